//! A page as a list of plain lines and fenced blocks, which can be joined again.

/// A page.
pub struct Page {
    /// Lines outside of blocks; `Part::Block(n)` stands for block number `n`.
    parts: Vec<Part>,
    pub blocks: Vec<Block>,
}

enum Part {
    Line(String),
    Block(usize),
}

/// A fenced block.
pub struct Block {
    pub language: String,
    /// The name of the file that the block is.
    pub name: Option<String>,
    pub body: Vec<String>,
}

impl Page {
    pub fn parse(text: &str) -> Self {
        let mut page = Self { parts: Vec::new(), blocks: Vec::new() };
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let Some(info) = line.strip_prefix("```") else {
                page.parts.push(Part::Line(line.to_owned()));
                continue;
            };
            let (language, name) = info.split_once(' ').map_or((info, None), |(language, name)| (language, Some(name.to_owned())));
            let body = lines.by_ref().take_while(|line| *line != "```").map(str::to_owned).collect();
            page.parts.push(Part::Block(page.blocks.len()));
            page.blocks.push(Block { language: language.to_owned(), name, body });
        }
        page
    }

    pub fn text(&self) -> String {
        let mut out = String::new();
        for part in &self.parts {
            match part {
                Part::Line(line) => out.push_str(line),
                Part::Block(number) => {
                    let block = &self.blocks[*number];
                    let name = block.name.as_ref().map_or(String::new(), |name| format!(" {name}"));
                    out.push_str(&format!("```{}{name}\n", block.language));
                    block.body.iter().for_each(|line| out.push_str(&format!("{line}\n")));
                    out.push_str("```");
                }
            }
            out.push('\n');
        }
        out
    }

    /// Replaces the lines between `<!-- name…` and `<!-- /name -->`.
    pub fn set_marked(&mut self, name: &str, lines: &[String]) {
        let starts = |part: &Part, mark: &str| matches!(part, Part::Line(line) if line.starts_with(mark));
        let open = self.parts.iter().position(|part| starts(part, &format!("<!-- {name}"))).unwrap();
        let close = self.parts.iter().position(|part| starts(part, &format!("<!-- /{name} -->"))).unwrap();
        self.parts.splice(open + 1..close, lines.iter().map(|line| Part::Line(line.clone())));
    }
}

/// Returns the lines under a heading of the second level, up to the next one.
pub fn chapter<'a>(text: &'a str, name: &str) -> &'a str {
    let start = text.find(&format!("\n## {name}\n")).unwrap() + 1;
    let end = text[start + 1..].find("\n## ").map_or(text.len(), |at| start + 1 + at);
    &text[start..end]
}

/// Returns the anchors of the headings, outside of blocks.
pub fn anchors(text: &str) -> Vec<String> {
    let lines = Page::parse(text).parts;
    lines.iter().filter_map(|part| if let Part::Line(line) = part { line.starts_with('#').then(|| anchor(line)) } else { None }).collect()
}

fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    text.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c)).map(|c| if c == ' ' { '-' } else { c }).collect()
}
