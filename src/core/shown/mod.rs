//! Is this line displayed source code: a listing, a diff, a grep result, a comment? Tests bytes only, because every
//! candidate line is asked. A line that is not recognised is taken at its word; other lines are never looked at.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use super::gate::Gate;
use crate::rules::Signs;

mod call;
mod diagnosed;
mod field;
mod listing;
mod prompt;
mod said;

pub use listing::{begins_step, is_numbered, is_overwritten, may_begin_step, stands_alone};
pub use prompt::{is_of_host, is_prompt, may_be_prompt, resembles_prompt};

/// Whether `line` (prefix removed) reads as source code or a comment rather than
/// as a message. `signs` are those of the line, or of a text that holds it.
#[must_use]
pub fn reads_as_code(line: &[u8], signs: Signs) -> bool {
    if signs.has(b':') && diagnosed::is_diagnosed(line) {
        return false;
    }
    if listing::is_numbered(line) || listing::is_quoted(line) || listing::is_blamed(line) {
        return true;
    }
    let shown = listing::unmarked(line);
    let listing::Shown { text, marked, indented, .. } = shown;
    if shown.is_of_a_file() || is_comment(text) || is_block_comment(line) || is_commit(text) {
        return true;
    }
    begins_as_code(text) || is_statement(text, signs, marked, indented) || has_code_inside(text, signs)
}

/// Whether the line has a shape of code that needs no words of a language.
fn is_statement(text: &[u8], signs: Signs, marked: bool, indented: bool) -> bool {
    (signs.has(b':') && field::is_field(text, marked || indented))
        || ((marked || indented) && signs.has(b'=') && (field::is_assigned(text) || field::is_argument(text)))
        || (signs.has(b'{') && field::is_element(text))
        || field::is_arm(text)
        || field::is_text(text, marked, indented)
        || (indented && is_documented(text))
        || (signs.has(b'<') && said::is_markup(text))
        || said::is_change(text, signs)
        || said::has_comment(text, signs)
        || said::is_said(text, signs)
        || (signs.has(b'(') && call::is_call(text))
}

/// Whether the line is a ` * text` within `/* … */`. Its star is below the first one's, one
/// blank beyond the code's indentation; nested bullets of Markdown have an even number of blanks.
fn is_block_comment(line: &[u8]) -> bool {
    let blanks = line.iter().take_while(|b| **b == b' ' || **b == b'\t').count();
    let spaces = line[..blanks].iter().rev().take_while(|b| **b == b' ').count();
    spaces % 2 == 1 && line[blanks..].starts_with(b"* ")
}

/// Whether the line is `ValueError: If the size is negative.` in a
/// list of what a function raises, or the name alone with its colon.
fn is_documented(text: &[u8]) -> bool {
    let name = text.iter().take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.')).count();
    let bare = text[..name].strip_suffix(b"Error").or_else(|| text[..name].strip_suffix(b"Exception"));
    let Some(bare) = bare else { return false };
    if &text[name..] == b":" {
        return !bare.is_empty() && !bare.contains(&b'.');
    }
    let Some(said) = text[name..].strip_prefix(b": ") else { return false };
    [&b"If "[..], b"if ", b"When ", b"when ", b"Raised ", b"Thrown ", b"On ", b"Whenever "].iter().any(|word| said.starts_with(word))
}

fn is_comment(text: &[u8]) -> bool {
    match text {
        [b':', rest @ ..] => [&b"param "[..], b"raise ", b"raises ", b"return", b"type ", b"rtype"].iter().any(|field| rest.starts_with(field)),
        [b'/', b'/' | b'*', ..] | [b'<', b'!', b'-', b'-', ..] | [b'-', b'-', b' ', ..] => true,
        [b'*', b' ', b'@', ..] | [b'"', b'"', b'"', ..] => true,
        [b'*', b' ', next, ..] => next.is_ascii_lowercase(),
        // Perl's documentation
        [b'=', b'h' | b'i' | b'o', ..] => [&b"=head"[..], b"=item ", b"=over "].iter().any(|mark| text.starts_with(mark)),
        // R and knitr print results behind `##` or `#>`; a shell, Python or Ruby comment has one `#`.
        [b'#', b' ', ..] => true,
        _ => false,
    }
}

/// Whether the line is of `git log --oneline`: `c8259e6 Fix TypeError: …`.
fn is_commit(text: &[u8]) -> bool {
    let hex = text.iter().take_while(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')).count();
    let id = &text[..hex];
    (7..=40).contains(&hex) && text.get(hex) == Some(&b' ') && id.iter().any(u8::is_ascii_digit) && id.iter().any(u8::is_ascii_lowercase)
}

const OPENERS: &[&[u8]] = &[
    b"function ",
    b"async function ",
    b"const ",
    b"let ",
    b"var ",
    b"class ",
    b"lambda ",
    b"declare ",
    b"fun ",
    b"guard ",
    b"val ",
    b"interface ",
    b"export ",
    b"import ",
    b"from ",
    b"def ",
    b"async def ",
    b"fn ",
    b"pub ",
    b"pub(",
    b"impl ",
    b"struct ",
    b"enum ",
    b"trait ",
    b"func ",
    b"type ",
    b"package ",
    b"public ",
    b"private ",
    b"protected ",
    b"static ",
    b"final ",
    b"abstract ",
    b"namespace ",
    b"using ",
    b"use ",
    b"template",
    b"return ",
    b"throw ",
    b"raise ",
    b"raise(",
    b"except ",
    b"except* ",
    b"except:",
    b"rescue ",
    b"catch (",
    b"catch(",
    b"} catch",
    b"} else",
    b"} finally",
    b"if (",
    b"if err",
    b"else if",
    b"elif ",
    b"while (",
    b"for (",
    b"switch (",
    b"case ",
    b"with ",
    b"try {",
    b"try:",
    b"finally",
    b"do {",
    b"@",
    b"#include",
    b"#define",
    b"#[",
    b"assert ",
    b"assert(",
    b"assert_",
    b"expect(",
    b"it(",
    b"test(",
    b"describe(",
    b"self.",
    b"this.",
    b"console.",
    b"logger.",
    b"logging.",
    b"log.",
    b"LOG.",
    b"System.out",
    b"System.err",
    b"print(",
    b"println!",
    b"eprintln!",
    b"printf(",
    b"fprintf(",
    b"puts ",
    b"echo \"",
    b"echo '",
    b"panic!(",
    b"bail!(",
    b"anyhow!(",
    b"stop(",
    b"warning(",
    b"die(",
    b"die \"",
    b"SELECT ",
    b"INSERT ",
    b"elseif",
    b"if ",
    b"if [",
    b"if ! ",
    b"|| ",
    b"&& ",
];

/// Returns the opener with which the line begins; only those that share its first byte are compared.
fn opener(text: &[u8]) -> Option<&'static [u8]> {
    static BY_FIRST: LazyLock<[Vec<&[u8]>; 256]> = LazyLock::new(|| {
        let mut by_first = [const { Vec::new() }; 256];
        OPENERS.iter().for_each(|opener| by_first[usize::from(opener[0])].push(*opener));
        by_first
    });
    BY_FIRST[usize::from(*text.first()?)].iter().find(|opener| text.starts_with(opener)).copied()
}

/// Whether the first word belongs to a programming language and the rest agrees.
fn begins_as_code(text: &[u8]) -> bool {
    let Some(opener) = opener(text) else { return false };
    let calls = opener.ends_with(b"(") || opener.ends_with(b".") || opener.ends_with(b"!(");
    calls
        || (opener == b"except " && text.contains(&b':'))
        || ends_as_code(text)
        || is_block(opener, text)
        || is_thrown(opener, text)
        || has_code_punctuation(text)
}

/// Whether the line says nothing but what is thrown: `raise AssertionError`, `throw CartError(`.
fn is_thrown(opener: &[u8], text: &[u8]) -> bool {
    let thrown = text[opener.len()..].split(|b| *b == b'#').next().unwrap_or_default().trim_ascii_end();
    let thrown = thrown.strip_suffix(b"(").unwrap_or(thrown);
    [&b"raise "[..], b"throw "].contains(&opener) && !thrown.is_empty() && thrown.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b':'))
}

/// Whether the line is the head of a block in Python: `except KeyError as error:`, `for error in errors:`.
fn is_block(opener: &[u8], text: &[u8]) -> bool {
    const BLOCKS: [&[u8]; 9] = [b"except ", b"except* ", b"class ", b"with ", b"elif ", b"else if", b"case ", b"def ", b"async def "];
    text.ends_with(b":") && (BLOCKS.contains(&opener) || (text.starts_with(b"if ") && is_condition(text)))
}

/// Whether the line is a condition: `if error:`, `if op[-1] is not nx.NetworkXError:`; a sentence has other words.
fn is_condition(text: &[u8]) -> bool {
    const PROSE: [&[u8]; 9] = [b"a", b"an", b"the", b"this", b"there", b"you", b"your", b"it", b"any"];
    let words = || text.split(|b| *b == b' ');
    words().count() <= 6 && !words().any(|word| PROSE.contains(&word))
}

/// Whether the line ends with `{`, `;`, `,`, `(`, `):`, `=>` or the like.
fn ends_as_code(text: &[u8]) -> bool {
    matches!(text, [.., b'{' | b';' | b'}' | b'(' | b'\\'] | [.., b')', b':' | b','] | [.., b'=', b'>'])
}

const PUNCTUATION: &[&str] = &[" = ", "()", ");", " => ", " {", " == ", " === ", " !== ", "!= ", "(\"", "('", "->", "::", "(f\"", "` +", "\" in ", "' in "];

fn has_code_punctuation(text: &[u8]) -> bool {
    // `None` only if they were too large to compile, which a test rules out.
    static MARKS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| AhoCorasick::new(PUNCTUATION).ok());
    MARKS.as_ref().is_some_and(|marks| marks.is_match(text))
}

const INSIDE: &[&[u8]] = &[
    b"throw new ",
    b"console.error(",
    b"console.log(",
    b"console.warn(",
    b"logger.error(",
    b"logging.error(",
    b"log.error(",
    b"LOG.error(",
    b"log.Fatal",
    b"log.Error",
    b"fmt.Errorf(",
    b"errors.New(",
    b"fmt.Println(",
    b"System.err.print",
    b"return Err(",
    b"Err(anyhow",
    b".catch(",
    b"catch (",
    b"} catch {",
    b"useCallback(",
    b"=> {",
    b".unwrap_err()",
    b"raise ValueError(",
    b"raise RuntimeError(",
    b"raise TypeError(",
    b"raise Exception(",
    b"raise NotImplementedError(",
    b"assertRaises(",
    b"pytest.raises(",
    b"toThrow(",
    b"expect(",
    b"print(\"",
    b"print('",
    b"printf(\"",
    b"eprintln!(",
    b"println!(",
    b"std::cerr",
    b"std::cout",
    b"puts \"",
    b"set -e",
    b"; then",
    b"; do ",
    b" === '",
    b" === \"",
    b" !== '",
    b" !== \"",
    b" or die \"",
    b" => '",
];

/// Whether `text` holds the few bytes of `part`, the first of which is rare: making a searcher would take longer.
fn holds(text: &[u8], part: &[u8]) -> bool {
    memchr::memchr_iter(part[0], text).any(|at| text[at..].starts_with(part))
}

/// Whether the line holds a call or a construct that no message would spell out.
fn has_code_inside(text: &[u8], signs: Signs) -> bool {
    let compares = || signs.has(b'=') && holds(text, b"== ");
    if !signs.has(b'(') && !signs.has(b';') && !ends_as_code(text) && !compares() {
        return false;
    }
    // V8 names a call like this: `expect(...).toBeFoo is not a function`.
    if signs.has(b'(') && holds(text, b"(...)") {
        return false;
    }
    // They count whatever surrounds them.
    static MARKS: LazyLock<Gate> = LazyLock::new(|| {
        let open: Vec<String> = INSIDE.iter().map(|mark| format!("*{}*", String::from_utf8_lossy(mark))).collect();
        Gate::new(open.iter().map(|mark| (mark.as_str(), true)))
    });
    MARKS.any(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_code_from_messages() {
        let code = [
            "# error handling is described below",
            "// error: see above",
            "/* error codes */",
            " * @throws Error when it fails",
            "console.log(\"error\", err);",
            "print(\"error: bad\")  # shown code",
            "function handleError(e) {",
            "if (isError(x)) {",
            "const hasError = false;",
            "    12\traise ValidationError(f\"unexpected token {tok!r}\") from exc",
            "const onError = useCallback((error: Error) => setState({ error }), []);",
            "+    throw new Error('error: no')",
            "c8259e6 Fix TypeError: cannot read property of undefined (#42)",
            "\terror: ColorValueSchema,",
            "} catch (Exception e) { LOG.error(\"failed to parse\", e); throw new RuntimeException(e); }",
        ];
        for line in code {
            assert!(reads_as_code(line.as_bytes(), Signs::of(line.as_bytes())), "{line}");
        }
        let messages = [
            "error: something broke",
            "src/till.cc:6:49: error: no match for 'operator<<' in 'std::cout << total(a)'",
            "Till.java:5: error: unreported exception X; throw new X() must be caught",
            "error[E0599]: no method named `println!(x)` found",
            "TypeError: expect(...).toBeFoo is not a function",
            "TypeError: undefined is not a function",
            "## Error: object 'x' not found",
            "#> Error in f(): boom",
            "make: *** [Makefile:12: all] Error 2",
            "rm: cannot remove '/etc/x': Permission denied",
            "java.lang.IllegalStateException: (x) is null",
            "E   assert 1 == 2",
            "src/main.rs:3:5: error: expected `;`",
            "Error: connect ECONNREFUSED 127.0.0.1:5432",
        ];
        for line in messages {
            assert!(!reads_as_code(line.as_bytes(), Signs::of(line.as_bytes())), "{line}");
        }
    }
}
