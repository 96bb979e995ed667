//! Writes one JSON object of values of any kind.

/// Writes one JSON object, member by member.
pub struct Object<'a> {
    out: &'a mut Vec<u8>,
    is_first: bool,
}

impl<'a> Object<'a> {
    /// Begins an object at the end of `out`.
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, is_first: true }
    }

    fn name(&mut self, name: &str) {
        if !self.is_first {
            self.out.push(b',');
        }
        self.is_first = false;
        self.out.extend_from_slice(format!("\"{name}\":").as_bytes());
    }

    /// Adds a member; `name` must need no escape.
    pub fn member(&mut self, name: &str, value: impl Into<serde_json::Value>) -> &mut Self {
        self.name(name);
        self.out.extend_from_slice(value.into().to_string().as_bytes());
        self
    }

    /// Adds a member if there is a value.
    pub fn optional(&mut self, name: &str, value: Option<impl Into<serde_json::Value>>) -> &mut Self {
        match value {
            Some(value) => self.member(name, value),
            None => self,
        }
    }

    /// Adds a member whose value is already JSON.
    pub fn raw(&mut self, name: &str, json: &[u8]) -> &mut Self {
        self.name(name);
        self.out.extend_from_slice(json);
        self
    }

    /// Adds a member that is an object, whose members `members` adds.
    pub fn object(&mut self, name: &str, members: impl FnOnce(&mut Object)) -> &mut Self {
        self.name(name);
        let mut inner = Object::new(self.out);
        members(&mut inner);
        inner.end();
        self
    }

    /// Ends the object.
    pub fn end(&mut self) {
        self.out.push(b'}');
    }
}
