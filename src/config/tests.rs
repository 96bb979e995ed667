//! Tests of the annotated file against the types, of the layers, and of every kind of mistake as a user sees it.

use std::collections::BTreeSet;
use std::path::Path;

use super::*;
use crate::diag::Source;

const ANNOTATED: &str = include_str!("../../config/siftd.toml");

/// Runs `mistakes.txt`: a title, a text, and all messages about it, word for word.
#[test]
fn every_mistake_is_shown_with_its_place_and_its_mend() {
    const GALLERY: &str = include_str!("mistakes.txt");
    let (preface, cases) = GALLERY.split_once("\n=== ").unwrap();
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    let mut actual = preface.to_owned();
    for case in cases.split("\n=== ") {
        let (title, rest) = case.split_once('\n').unwrap();
        let text = rest.split("\n---\n").next().unwrap();
        let errors = Config::parse("c.toml", text).expect_err(title);
        let now = format!("{title}\n{text}\n---\n{errors}\n");
        assert!(update || now == case, "expected:\n{case}\nis now:\n{now}");
        actual += &format!("\n=== {now}");
    }
    if update {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/config/mistakes.txt");
        std::fs::write(path, actual).unwrap();
    }
}

/// The annotated file with its examples uncommented; the example of a key replaces its default.
fn examples() -> String {
    let mut lines: Vec<&str> = Vec::new();
    let mut in_block = false;
    for line in ANNOTATED.lines() {
        let example = line.strip_prefix('#').filter(|rest| !rest.is_empty() && !rest.starts_with(' '));
        in_block |= example.is_some_and(|e| e.starts_with("[["));
        if let Some((key, _)) = example.and_then(|e| e.split_once(" = ")).filter(|_| !in_block) {
            lines.retain(|earlier| earlier.split(" = ").next() != Some(key));
        }
        lines.push(example.unwrap_or(line));
    }
    lines.join("\n")
}

#[test]
fn the_annotated_file_is_the_default() {
    assert_eq!(Config::parse("siftd.toml", ANNOTATED).unwrap(), Config::default());
    assert_eq!(Config::parse("empty", "\u{feff}# nothing\r\n").unwrap(), Config::default());
}

#[test]
fn its_examples_parse_and_show_the_defaults_of_sources_and_sinks() {
    let config = Config::parse("siftd.toml", &examples()).unwrap_or_else(|e| panic!("{e}"));
    let include = vec!["/var/log/agents/**/*.log".to_owned()];
    let address = "127.0.0.1:5514".parse().ok();
    let path = |text: &str| Some(PathBuf::from(text));
    let tls = TlsConfig {
        certificate: "/etc/siftd/tls/cert.pem".into(),
        key: "/etc/siftd/tls/key.pem".into(),
        client_ca: path("/etc/siftd/tls/clients.pem"),
        ..TlsConfig::default()
    };
    let [owner, group, user] = ["root", "adm", "nobody"].map(str::to_owned);
    let argv = ["kubectl", "logs", "--follow", "deploy/web"].map(str::to_owned).to_vec();
    let of = SourceConfig::new;
    assert_eq!(
        config.sources,
        [
            SourceConfig { include, ..of("agent", SourceKind::File) },
            SourceConfig { address, tls: Some(tls), ..of("syslog", SourceKind::Tcp) },
            SourceConfig { address, ..of("syslog-udp", SourceKind::Udp) },
            SourceConfig { path: path("/run/siftd/log.sock"), owner, group, ..of("local", SourceKind::Unix) },
            SourceConfig { argv, directory: path("/srv/web"), user, ..of("web", SourceKind::Command) },
            of("journal", SourceKind::Journald),
        ]
    );
    let path = Some(PathBuf::from("/var/log/siftd/events.ndjson"));
    let mut tcp = SinkConfig::new("collector", SinkKind::Tcp);
    tcp.peer.address = Some("127.0.0.1:5170".into());
    let mut http = SinkConfig::new("search", SinkKind::Http);
    http.peer.url = Some("https://search.example:9200/logs-siftd-default/_bulk".into());
    http.http.token_file = Some("/etc/siftd/search.token".into());
    http.http.dead_letter = Some("/var/lib/siftd/search.dead.ndjson".into());
    [http.peer.ca_file, http.peer.cert_file, http.peer.key_file] = ["ca.pem", "siftd.pem", "siftd.key"].map(|name| Some(Path::new("/etc/siftd").join(name)));
    assert_eq!(config.sinks, [SinkConfig { path, ..SinkConfig::new("events", SinkKind::File) }, tcp, http]);
    let detection = &config.error_detection;
    assert_eq!(detection.severity_overrides["javascript.error"], Severity::Medium);
    let [plain, regex] = &detection.custom_patterns[..] else { panic!("{detection:?}") };
    assert_eq!((plain.kind, plain.pattern.as_str()), (PatternKind::Substring, "RECONCILE MISMATCH"));
    assert_eq!((regex.kind, regex.category, regex.severity), (PatternKind::Regex, Some(Category::RuntimeError), Some(Severity::High)));
    assert_eq!(regex.line, examples().lines().position(|l| l.starts_with("custom_patterns")).unwrap() + 1);
}

/// The keys that the code asks for: each must be a line of the annotated file, and that file has no other.
#[test]
fn every_key_is_annotated_and_every_annotated_key_is_read() {
    let layers = [Source::new("siftd.toml", &examples())];
    let asked = schema::read(&mut Config::default(), &layers, &fixed_literal).asked;
    let name = |path: &String| path.rsplit('.').next().unwrap_or_default().to_owned();
    let of_patterns = |path: &str| path.contains("patterns.") || path.contains("positives.") || path.contains("indicators.");
    let known: BTreeSet<_> = asked.keys().filter(|path| !of_patterns(path)).map(name).collect();
    let annotated: BTreeSet<_> = ANNOTATED
        .lines()
        .filter_map(|line| {
            let line = line.strip_prefix('#').unwrap_or(line);
            let key = match line.strip_prefix('[') {
                Some(header) => header.trim_matches(['[', ']']).rsplit('.').next(),
                None => line.split_once(" = ").map(|(key, _)| key),
            };
            key.filter(|key| !key.is_empty() && !key.contains(' ')).map(str::to_owned)
        })
        .collect();
    assert_eq!(known, annotated);
    for path in asked.keys().filter(|path| of_patterns(path)) {
        assert!(ANNOTATED.contains(&format!("`{}`", name(path))) || ANNOTATED.contains(&format!("{} = ", name(path))), "{path}");
    }
}

#[test]
fn layers_override_values_and_add_to_lists() {
    let first = "limits.trace_idle = \"1s\"\nrules.disable = [\"a.b\"]\n[breaker]\nwarn_after = 9\n[error_detection]\ncustom_patterns = [\"one\"]\nseverity_overrides = { r.one = \"low\" }\n[[sink]]\nname = \"a\"\ntype = \"stdout\"";
    let second = "limits.trace_idle = \"2s\"\nrules.disable = [\"c.d\"]\nbreaker.open_after = 9\n[error_detection]\nerror_indicators = [\"two\"]\nseverity_overrides = { unknown_error = \"high\" }\n[[sink]]\nname = \"b\"\ntype = \"tcp\"\naddress = \"b:1\"";
    let layers = [Source::new("1", first), Source::new("2", second)];
    let config = Config::default().overlay(&layers, &fixed_literal).unwrap();
    assert_eq!(config.limits.trace_idle, Duration::from_secs(2));
    assert_eq!(config.rules.disable, ["a.b", "c.d"]);
    assert_eq!(config.error_detection.severity_overrides.len(), 2);
    let places: Vec<_> = config.error_detection.custom_patterns.iter().map(|p| (p.file.as_str(), p.line, p.pattern.as_str())).collect();
    assert_eq!(places, [("1", 6, "one"), ("2", 5, "two")]);
    assert_eq!(config.sinks.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    let twice = Config::default().overlay(&[Source::new("1", first), Source::new("2", first)], &fixed_literal);
    let twice = twice.unwrap_err().to_string();
    assert!(twice.contains("error: 2:9:8: `name` in [[sink]] is taken"), "{twice}");
    let strict =
        Config::default().overlay(&[Source::new("1", "error_detection.custom_patterns = [{pattern='abc', type='regex'}]")], &|_| Err("is refused".into()));
    assert!(strict.unwrap_err().to_string().contains("`pattern` in custom_patterns is refused"));
}

#[test]
fn files_are_found_in_order_and_problems_named() {
    let folder = std::env::temp_dir().join(format!("siftd-config-{}", std::process::id()));
    let drop_ins = folder.join("conf.d");
    let user = User { root: false, state_home: None, home: Some("/home/u".into()) };
    assert_eq!(Config::load_folder(&folder, &user, &fixed_literal).unwrap().state_dir, Path::new("/home/u/.local/state/siftd"));
    std::fs::create_dir_all(&drop_ins).unwrap();
    std::fs::write(folder.join("siftd.toml"), "state_dir = \"/one\"\nretry.max_retries = 1").unwrap();
    for (name, text) in [("20.toml", "retry.max_retries = 20"), ("10.toml", "retry.max_retries = 10"), (".30.toml", "x"), ("40.toml~", "x")] {
        std::fs::write(drop_ins.join(name), text).unwrap();
    }
    let config = Config::load_folder(&folder, &user, &fixed_literal).unwrap();
    assert_eq!((config.state_dir.to_str(), config.retry.max_retries), (Some("/one"), 20));
    std::fs::write(drop_ins.join("50.toml"), b"a = 1\n# \xff").unwrap();
    let problem = Config::load_folder(&folder, &user, &fixed_literal).unwrap_err().to_string();
    assert!(problem.contains("conf.d/50.toml: cannot be read: line 2 is not UTF-8"), "{problem}");
    let missing = Config::load(Some(&folder.join("none.toml")), &user, &fixed_literal).unwrap_err().to_string();
    assert!(missing.contains("none.toml: cannot be read: No such file"), "{missing}");
    std::fs::remove_file(drop_ins.join("50.toml")).unwrap();
    std::fs::remove_file(folder.join("siftd.toml")).unwrap();
    std::os::unix::fs::symlink("nowhere.toml", folder.join("siftd.toml")).unwrap();
    let dangling = Config::load_folder(&folder, &user, &fixed_literal).unwrap_err().to_string();
    assert!(dangling.contains("siftd.toml: cannot be read: No such file"), "{dangling}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn where_state_goes() {
    let user = |root, state_home: Option<&str>, home: Option<&str>| User { root, state_home: state_home.map(Into::into), home: home.map(Into::into) };
    for (user, dir) in [
        (user(true, Some("/s"), Some("/root")), "/var/lib/siftd"),
        (user(false, Some("/s"), Some("/h")), "/s/siftd"),
        (user(false, Some("relative"), Some("/h")), "/h/.local/state/siftd"),
        (user(false, None, None), "/var/lib/siftd"),
    ] {
        assert_eq!(user.state_dir(), Path::new(dir), "{user:?}");
    }
}

/// Each mistake keeps its line, so a long line full of them would fill the memory.
#[test]
fn so_many_mistakes_are_told_and_no_more() {
    let broken = "= ".repeat(20_000);
    let unknown: String = (0..2000).map(|n| format!("k{n} = 1\n")).collect();
    let wrong = format!("error_detection.noise_patterns = [{}]", "1, ".repeat(2000));
    for text in [broken, unknown, wrong] {
        let told = Config::parse("c.toml", &text).expect_err("mistakes").0.len();
        assert!((1..=2 * reader::MAX_MISTAKES).contains(&told), "{told}");
    }
}
