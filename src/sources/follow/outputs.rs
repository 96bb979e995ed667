//! The files that siftd itself writes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use crate::delivery::Node;

/// How many to remember, newest first: outputs are rotated for months, and older generations are known by their names.
const MAX_OUTPUTS: usize = 1024;

/// Files that siftd itself writes, shared between the sinks that write them and
/// the sources that must not read them. A reused inode belongs to another file.
#[derive(Clone, Default)]
pub struct OwnOutputs(Arc<Mutex<VecDeque<Node>>>);

impl OwnOutputs {
    /// Adds a file.
    pub fn add(&self, node: Node) {
        let mut nodes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        nodes.retain(|known| (known.dev, known.ino) != (node.dev, node.ino));
        nodes.push_back(node);
        if nodes.len() > MAX_OUTPUTS {
            nodes.pop_front();
        }
    }

    /// Whether siftd writes this file.
    #[must_use]
    pub fn contains(&self, node: &Node) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|own| own.is(node))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_known_and_no_more() {
        let outputs = OwnOutputs::default();
        let node = |ino, born| Node { dev: 1, ino, born };
        (0..2000).for_each(|ino| outputs.add(node(ino, 5)));
        assert!(outputs.contains(&node(1999, 5)) && !outputs.contains(&node(1999, 6)) && !outputs.contains(&node(0, 5)));
        outputs.add(node(1999, 6));
        assert!(outputs.contains(&node(1999, 6)) && !outputs.contains(&node(1999, 5)));
        assert_eq!(outputs.0.lock().unwrap().len(), MAX_OUTPUTS);
    }
}
