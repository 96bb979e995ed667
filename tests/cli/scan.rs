//! `siftd scan`: inputs, filters, order, exit codes.

use std::io::{Read, Write};
use std::process::Stdio;

use super::{Done, Folder, error};

/// Two frames with a skippable one between them, made by `zstd -19`; the first is compressed.
const ZST: &str = "28b52ffd0468dd030012071611807df436f0555693247777fbc291630a03a0661d68bd53eef0dc7b2d44f60fc78bf1029127e0d152091d53c8f8b35442c71432de2c95d031858c2f4b25744c21e3c952091d53c8f8b15442c7140246c0b8f6c06dc058063ca811a0bb3f63f0853110126105fa8587f4397eec7b3af9b243d531c7b8490dfb13b5f4502a4d180300000061626328b52ffd0458310100323032362d30312d30315430303a30303a30305a204552524f52207061636b65642074776f0aa2a52a0e";

fn unhex(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn gz(text: &str) -> Vec<u8> {
    gz_of(text.as_bytes())
}

fn gz_of(bytes: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

#[test]
fn reads_files_folders_globs_and_stdin_in_order() {
    let folder = Folder::new();
    for name in ["b.log", "logs/z.log", "logs/deep/a.log", "logs/deep/x.txt", "logs/.git/c.log"] {
        folder.write(name, format!("fine\n{}", error(name)));
    }
    let all = folder.siftd(["scan", "b.log", "logs"]).ended(0).shown();
    assert_eq!(
        all,
        ["b.log:2 ERROR b.log", "logs/deep/a.log:2 ERROR logs/deep/a.log", "logs/deep/x.txt:2 ERROR logs/deep/x.txt", "logs/z.log:2 ERROR logs/z.log"]
    );
    let globs = folder.siftd(["scan", "logs/**/*.log", "*.log"]).ended(0).shown();
    assert_eq!(globs, ["logs/deep/a.log:2 ERROR logs/deep/a.log", "logs/z.log:2 ERROR logs/z.log", "b.log:2 ERROR b.log"]);
    let shallow = folder.siftd(["scan", "./logs/*.log"]).ended(0).shown();
    assert_eq!(shallow, ["./logs/z.log:2 ERROR logs/z.log"]);
    for args in [&["scan"][..], &["scan", "-"]] {
        let piped = folder.piped(args, error("piped")).ended(0);
        assert_eq!(piped.shown(), ["-:1 ERROR piped"]);
        assert_eq!(piped.records()[0]["source"]["type"], "stdin");
    }
}

#[test]
fn a_path_has_the_same_ids_however_it_is_written() {
    let folder = Folder::new();
    folder.write("logs/a.log", error("one"));
    let id = |path: &str| folder.siftd(["scan", path]).ended(0).records()[0]["id"].clone();
    let ids = ["logs/a.log", "./logs/a.log", "logs//./a.log"].map(id);
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    assert_ne!(id(folder.at("logs/a.log").to_str().unwrap()), ids[0]);
}

#[test]
fn unpacks_by_content_whatever_the_name() {
    let folder = Folder::new();
    let mut two = gz(&error("one"));
    two.extend(gz(&error("two")));
    folder.write("a.log.gz", &two);
    folder.write("b.zst", unhex(ZST));
    folder.write("c.log", gz(&error("no suffix")));
    let done = folder.siftd(["scan", "a.log.gz", "b.zst", "c.log"]).ended(0);
    assert_eq!(
        done.shown(),
        ["a.log.gz:1 ERROR one", "a.log.gz:2 ERROR two", "b.zst:61 ERROR packed one", "b.zst:62 ERROR packed two", "c.log:1 ERROR no suffix"]
    );
    assert_eq!(folder.piped(["scan"], &two).ended(0).shown().len(), 2);
}

#[test]
fn a_damaged_archive_gives_what_it_holds_and_exit_2() {
    let folder = Folder::new();
    let packed = gz(&(error("first") + &"fine\n".repeat(100_000)));
    folder.write("cut.gz", &packed[..packed.len() - 20]);
    folder.write("cut.zst", &unhex(ZST)[..100]);
    let done = folder.siftd(["scan", "cut.gz", "cut.zst"]).ended(2);
    assert_eq!(done.shown()[0], "cut.gz:1 ERROR first");
    assert!(done.err().contains("cut.gz: reading ended early") && done.err().contains("cut.zst: "), "{}", done.err());
}

#[test]
fn damage_is_told_in_words_that_are_no_code() {
    let folder = Folder::new();
    let whole = unhex(ZST);
    for at in 4..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x14;
        folder.write("a.zst", &damaged);
        let said = folder.siftd(["scan", "a.zst"]).err();
        let known = [
            "",
            "unexpected end of file",
            "its compressed data are damaged",
            "what follows its compressed data is not compressed, and is not read",
            "it was compressed with a dictionary: zstd -D DICTIONARY -dc FILE | siftd",
        ];
        let why = said.strip_prefix("siftd: a.zst: reading ended early: ").unwrap_or(&said);
        assert!(known.contains(&why.trim_end()) || why.starts_with("it wants "), "{said}");
    }
}

/// Returns a log with a block of 128 KiB: damage is reported only after most of a read was unpacked.
fn many() -> String {
    (0..4000).map(|n| error(&format!("number {n} {}", n * 7919 % 10_007))).collect()
}

#[test]
fn all_that_was_unpacked_before_the_damage_is_found() {
    let folder = Folder::new();
    let packed = gz(&many());
    let zst = ruzstd::encoding::compress_to_vec(many().as_bytes(), ruzstd::encoding::CompressionLevel::Fastest);
    folder.write("cut.gz", &packed[..packed.len() / 2]);
    let short = gz(&error("one"));
    folder.write("short.gz", &short[..short.len() - 4]);
    folder.write("cut.zst", &zst[..zst.len() * 9 / 10]);
    let end = "unexpected end of file";
    for (name, least, why) in [("cut.gz", 1900, "incomplete deflate stream"), ("short.gz", 1, end), ("cut.zst", 1000, end)] {
        let done = folder.siftd(["scan", name]).ended(2);
        assert!(done.records().len() >= least, "{name}: {}", done.records().len());
        assert_eq!(done.err(), format!("siftd: {name}: reading ended early: {why}\n"));
        let piped = folder.piped(["scan"], std::fs::read(folder.at(name)).unwrap()).ended(2);
        assert_eq!(piped.records().len(), done.records().len(), "{name}");
    }
    assert!(folder.siftd(["digest", "cut.gz"]).ended(2).out().contains("ERROR number"));
}

#[test]
fn what_follows_compressed_data_is_padding_or_is_told() {
    let folder = Folder::new();
    let frame = ruzstd::encoding::compress_to_vec(error("one").as_bytes(), ruzstd::encoding::CompressionLevel::Fastest);
    for (name, whole) in [("a.gz", gz(&error("one"))), ("b.zst", frame)] {
        for (behind, is_padding) in [(&b""[..], true), (b"\n", true), (&[0; 1000], true), (b"ERROR two\n", false), (b"\x1f", false), (b"\x28", false)] {
            folder.write(name, [&whole, behind].concat());
            let done = folder.siftd(["scan", name]).ended(if is_padding { 0 } else { 2 });
            assert_eq!(done.records().len(), 1, "{name} {behind:?}");
            let is_cut = whole.starts_with(behind);
            let why = if is_cut { "unexpected end of file" } else { "what follows its compressed data is not compressed, and is not read" };
            let said = if is_padding { String::new() } else { format!("siftd: {name}: reading ended early: {why}\n") };
            assert_eq!(done.err(), said);
        }
        folder.write(name, [&whole[..], &whole].concat());
        assert_eq!(folder.siftd(["scan", name]).ended(0).records().len(), 2);
    }
}

#[test]
fn what_cannot_be_read_is_said_and_the_others_go_on() {
    let folder = Folder::new();
    folder.write("good.log", error("boom"));
    let done = folder.siftd(["scan", "gone.log", "*.none", "good.log"]).ended(2);
    assert_eq!(done.shown(), ["good.log:1 ERROR boom"]);
    assert!(done.err().contains("gone.log: No such file or directory\n") && done.err().contains("*.none: no file matches"), "{}", done.err());
}

#[test]
fn what_it_has_written_in_any_form_is_left_out_and_said() {
    let folder = Folder::new();
    folder.write("a.log", error("boom"));
    folder.write("ecs.toml", "[[source]]\nname = \"s\"\ntype = \"stdin\"\n[[sink]]\nname = \"e\"\ntype = \"file\"\npath = \"own/ecs.ndjson\"\nschema = \"ecs\"\n[[sink]]\nname = \"o\"\ntype = \"file\"\npath = \"own/otel.ndjson\"\nschema = \"otel\"\n");
    std::fs::create_dir(folder.at("own")).unwrap();
    folder.piped(["run", "--config", "ecs.toml", "--state-dir", "st"], error("boom")).ended(0);
    for (name, words) in [
        ("records.ndjson", &["scan", "--format", "ndjson", "a.log"][..]),
        ("report.json", &["scan", "--format", "report", "a.log"]),
        ("sarif.json", &["scan", "--format", "sarif", "a.log"]),
        ("digest.txt", &["digest", "a.log"]),
        ("digest.md", &["digest", "--format", "markdown", "a.log"]),
        ("digest.json", &["digest", "--format", "json", "a.log"]),
    ] {
        folder.write(&format!("own/{name}"), folder.siftd(words).ended(0).bytes());
    }
    folder.siftd(["exec", "--verdict", "own/verdict.json", "--", "cat", "a.log"]).ended(0);
    let done = folder.siftd(["scan", "--format", "unix", "own"]).ended(0);
    assert_eq!((done.out().as_str(), done.err().lines().filter(|line| line.contains("siftd's own ")).count()), ("", 9), "{}", done.err());
    // The same on stdin, which counts as named; in a pipe, text may follow a digest.
    for file in std::fs::read_dir(folder.at("own")).unwrap() {
        let path = file.unwrap().path();
        for (command, mode) in [("scan", "auto"), ("run", "auto"), ("scan", "text"), ("run", "text")] {
            let words = [&[command, "--mode", mode][..], if command == "scan" { &["--format", "unix"] } else { &[] }].concat();
            let open = || std::fs::File::open(&path).unwrap();
            let done = Done(folder.command(&words).stdin(Stdio::from(open())).output().unwrap());
            let (code, count) = if mode == "auto" { (2, 1) } else { (0, 0) };
            let name = path.display();
            assert_eq!((done.code(), done.err().matches("siftd's own ").count()), (Some(code), count), "{command} {mode} {name}: {}", done.err());
            assert!(mode == "text" || done.bytes().is_empty(), "{name}");
            if mode == "auto" {
                let piped = folder.piped(&words, std::fs::read(&path).unwrap()).ended(2);
                assert!(piped.err().contains("siftd's own ") && piped.bytes().is_empty(), "{name}: {}", piped.err());
            }
        }
    }
    let prompt = format!("{}{}", folder.read("own/digest.txt"), error("more"));
    assert_eq!(folder.piped(["scan", "--format", "ndjson"], prompt).ended(0).records().last().unwrap()["text"], "ERROR more");
    // A file that merely quotes some of it is a log.
    folder.write("log/quoted", format!("{}{}", folder.read("own/digest.txt"), error("more")));
    assert!(folder.siftd(["scan", "--format", "unix", "log"]).ended(0).out().contains("more"));
}

#[test]
fn never_reads_its_own_output() {
    let folder = Folder::new();
    folder.write("a.log", error("boom"));
    let out = std::fs::File::create(folder.path().join("out.ndjson")).unwrap();
    let status = folder.command(["scan", ".", "a.log"]).stdout(Stdio::from(out)).status().unwrap();
    assert_eq!(status.code(), Some(0));
    assert_eq!(std::fs::read_to_string(folder.path().join("out.ndjson")).unwrap().lines().count(), 1);
}

#[test]
fn output_goes_into_a_file_but_never_into_one_that_is_read() {
    let folder = Folder::new();
    folder.write("a.log", error("boom"));
    folder.write("old.ndjson", "what stood there before, and was longer than the one record that comes now\n".repeat(40));
    let done = folder.siftd(["scan", "--output", "old.ndjson", "."]).ended(0);
    assert_eq!((done.out().as_str(), folder.read("old.ndjson").lines().count()), ("", 1), "it is overwritten, and not read");
    assert_eq!(folder.siftd(["scan", "-o", "-", "a.log"]).ended(0).records().len(), 1);
    let refused = folder.siftd(["scan", "--output", "a.log", "a.log"]).ended(2).err();
    assert_eq!(refused, "siftd: a.log: --output would overwrite what is to be read: name another file\n");
    assert!(folder.read("a.log").contains("boom"));
    assert_eq!(folder.siftd(["scan", "--output", "no/x", "a.log"]).ended(2).err(), "siftd: no/x: No such file or directory\n");
    folder.siftd(["scan", "--new-only", "--baseline", "old.ndjson", "--output", "old.ndjson", "a.log"]).ended(2);
    assert_eq!(folder.read("old.ndjson").lines().count(), 1, "the baseline stays");
}

#[test]
fn what_is_excluded_is_not_read() {
    let folder = Folder::new();
    for name in ["a.log", "b.txt", "old/c.log", "old/deep/d.log", "new/e.log"] {
        folder.write(name, error(name));
    }
    let seen = |args: &[&str]| folder.siftd([&["scan", "."][..], args].concat()).ended(0).shown().join(" ");
    assert_eq!(seen(&["--exclude", "old", "--exclude", "*.txt"]), "a.log:1 ERROR a.log new/e.log:1 ERROR new/e.log");
    assert_eq!(seen(&["--exclude", "old/*.log", "--exclude", "new/", "--exclude=b.*"]), "a.log:1 ERROR a.log old/deep/d.log:1 ERROR old/deep/d.log");
    assert_eq!(folder.siftd(["scan", "a.log", "b.txt", "--exclude", "a.*"]).ended(0).records().len(), 1, "names count like what is found");
    assert_eq!(folder.siftd(["scan", ".", "--exclude", "*"]).ended(2).err(), "siftd: --exclude leaves no file to read\n");
    assert!(folder.siftd(["scan", ".", "--exclude", "a["]).ended(2).err().contains("--exclude <GLOB>"));
}

#[test]
fn an_output_outlives_names_of_which_none_can_be_read() {
    let folder = Folder::new();
    folder.write("a.log", error("boom"));
    folder.write("calm.log", "");
    folder.write("binary", b"\x7fELF\x02\x01\x01\0\0\x03\0>\0\n\0x\0");
    std::fs::create_dir(folder.at("empty")).unwrap();
    folder.siftd(["scan", "--output", "main.ndjson", "a.log"]).ended(0);
    let main = folder.read("main.ndjson");
    assert!(main.contains("boom"));
    for input in ["typo.log", "empty", "binary", "*.none"] {
        for format in ["ndjson", "report", "sarif"] {
            folder.siftd(["scan", "--format", format, "--output", "main.ndjson", input]).ended(2);
            assert_eq!(folder.read("main.ndjson"), main, "{input} {format}");
        }
        folder.siftd(["scan", "--output", "new.ndjson", input]).ended(2);
        assert!(!folder.at("new.ndjson").exists(), "{input}: an empty file looks like an answer");
    }
    // One that was read is an answer, whatever the others are.
    folder.siftd(["scan", "--format", "report", "--output", "main.ndjson", "typo.log", "calm.log"]).ended(2);
    assert!(folder.read("main.ndjson").starts_with("{\"errors\":[") && folder.read("main.ndjson").contains("\"total\":0"));
    folder.siftd(["scan", "--output", "main.ndjson", "calm.log"]).ended(0);
    assert!(folder.at("main.ndjson").exists() && folder.read("main.ndjson").is_empty());
}

#[test]
fn a_baseline_is_no_output() {
    let folder = Folder::new();
    folder.write("a.log", error("boom"));
    folder.siftd(["scan", "--output", "b.ndjson", "a.log"]).ended(0);
    let baseline = folder.read("b.ndjson");
    std::os::unix::fs::symlink("b.ndjson", folder.at("link")).unwrap();
    for output in ["b.ndjson", "./b.ndjson", "link"] {
        let done = folder.siftd(["scan", "--new-only", "--baseline", "b.ndjson", "--output", output, "a.log"]).ended(2);
        assert!(done.err().contains("--output would overwrite the --baseline"), "{}", done.err());
        assert_eq!(folder.read("b.ndjson"), baseline);
    }
}

#[test]
fn a_pattern_may_name_links_and_a_folder_skips_them() {
    let folder = Folder::new();
    folder.write("data/a.log", error("boom"));
    folder.write("logs/b.log", error("bang"));
    let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, folder.at(name)).unwrap();
    link("../data/a.log", "logs/link.log");
    link("../data", "logs/folder");
    link("nowhere", "logs/gone.log");
    let boom = ["logs/link.log:1 ERROR boom"];
    assert_eq!(folder.siftd(["scan", "logs/link*"]).ended(0).shown(), boom);
    assert_eq!(folder.siftd(["scan", "logs/**/l*.log"]).ended(0).shown(), boom);
    assert!(folder.siftd(["digest", "logs/link*"]).ended(0).out().contains("boom"));
    assert_eq!(folder.siftd(["scan", "logs"]).ended(0).shown(), ["logs/b.log:1 ERROR bang"]);
    assert!(folder.siftd(["scan", "logs/gone*"]).ended(2).err().contains("no file matches"));
}

#[test]
fn a_path_that_leaves_out_nothing_is_told() {
    let folder = Folder::new();
    folder.write("logs/old/a.log", error("boom"));
    let hint = |exclude: &str, name: &std::ffi::OsStr| {
        let args = ["scan", "--exclude", exclude].map(std::ffi::OsStr::new);
        folder.siftd(args.iter().chain([&name])).ended(0).err()
    };
    let whole = folder.at("logs");
    let said = hint("logs/old/*.log", whole.as_os_str());
    assert!(said.contains("hint: --exclude logs/old/*.log leaves out nothing") && said.contains("/logs/old/a.log"), "{said}");
    folder.write("logs/b.log", error("bang"));
    for (exclude, name) in [("**/old/*.log", whole.as_os_str()), ("logs/old/*.log", "logs".as_ref()), ("*.gz", "logs".as_ref())] {
        assert_eq!(hint(exclude, name), "", "{exclude}");
    }
}

#[test]
fn a_file_is_read_once_however_often_it_is_named() {
    let folder = Folder::new();
    folder.write("logs/a.log", error("boom"));
    assert_eq!(folder.siftd(["scan", "logs/a.log", "logs", "./logs/a.log", "logs/*.log"]).ended(0).records().len(), 1);
    std::fs::hard_link(folder.at("logs/a.log"), folder.at("hard.log")).unwrap();
    std::os::unix::fs::symlink("logs/a.log", folder.at("soft.log")).unwrap();
    assert_eq!(folder.siftd(["scan", "soft.log", "logs/a.log", "hard.log"]).ended(0).shown(), ["soft.log:1 ERROR boom"]);
    assert_eq!(folder.siftd(["scan", "gone", "gone"]).ended(2).err().lines().count(), 2, "what is not there is said");
    std::fs::create_dir(folder.at("empty")).unwrap();
    for args in [&["scan", "empty"][..], &["scan", "logs", "empty"]] {
        assert_eq!(folder.siftd(args).ended(2).err(), "siftd: empty: no file to read in it\n");
    }
}

#[test]
fn of_many_files_that_are_no_logs_the_first_are_named_and_all_are_counted() {
    let folder = Folder::new();
    folder.write("in/a.log", error("boom"));
    (0..25).for_each(|number| drop(folder.write(&format!("in/tool{number}"), b"\x7fELF\x02\x01\x01\0\0\x03\0>\0\n\0x\0")));
    let done = folder.siftd(["scan", "in"]).ended(0);
    assert_eq!((done.records().len(), done.err().matches(": is a binary file").count()), (1, 20));
    assert!(done.err().ends_with("siftd: 5 files more of the folders are no logs and were not read\n"), "{}", done.err());
}

#[test]
fn what_is_no_log_is_left_out_and_said() {
    let folder = Folder::new();
    folder.write("in/a.log", error("boom"));
    folder.write("in/tool", b"\x7fELF\x02\x01\x01\0\0\x03\0>\0\nERROR: usage\0ERROR: two\0\n");
    folder.write("holes.log", [&b"\0\0\0"[..], error("one").as_bytes(), b"\0\0", error("two").as_bytes()].concat());
    let done = folder.siftd(["scan", "in/tool", "holes.log"]).ended(2);
    assert_eq!(done.records().len(), 2);
    assert!(done.err().starts_with("siftd: in/tool: is a binary file"), "{}", done.err());
    assert!(!folder.siftd(["scan", "-a", "in/tool"]).ended(0).records().is_empty());
    assert!(folder.siftd(["scan", "in"]).ended(0).err().contains("in/tool: is a binary file"));
    let tool = std::fs::read(folder.at("in/tool")).unwrap();
    assert!(!folder.piped(["scan", "-a"], &tool).ended(0).records().is_empty());
    for command in ["scan", "digest"] {
        let said = folder.piped([command], &tool).ended(2).err();
        assert!(said.starts_with("siftd: stdin: is a binary file"), "{said}");
    }

    let tar = [&[b'a'; 257][..], b"ustar\x0000", &[0; 248]].concat();
    for (name, bytes, unpacks) in [("a.log.xz", &b"\xfd7zXZ\0\0\x04\xe6\xd6"[..], "xz -dc FILE | siftd "), ("a.tgz", &gz_of(&tar), "tar -xOf FILE | siftd ")] {
        folder.write(name, bytes);
        let said = folder.siftd(["scan", name]).ended(2).err();
        assert!(said.starts_with(&format!("siftd: {name}: is ")) && said.contains(&unpacks.replace("FILE", name)) && !said.contains("--binary"), "{said}");
        for command in ["scan", "digest"] {
            let said = folder.piped([command], bytes).ended(2).err();
            assert!(said.starts_with("siftd: stdin: is ") && said.contains(&unpacks.replace("siftd ", &format!("siftd {command}"))), "{said}");
        }
    }
    // Compressed data is no text, however it is read.
    folder.siftd(["scan", "--binary", "a.log.xz"]).ended(2);
    folder.siftd(["scan", "--binary", "a.tgz"]).ended(0);
    for name in ["a.log.xz", "in/tool"] {
        assert!(folder.siftd(["digest", name]).ended(2).err().starts_with(&format!("siftd: {name}: is ")));
    }

    for format in ["ndjson", "report"] {
        let own = folder.siftd(["scan", "--format", format, "in/a.log"]).ended(0).out();
        folder.write("in/own", &own);
        let digest = folder.siftd(["digest", "in/own"]).ended(0).out();
        assert!(digest.starts_with("1 error: 1 medium\n") && digest.contains("boom"), "{digest}");
        folder.write("in/own.gz", gz(&own));
        assert_eq!(folder.siftd(["digest", "in/own.gz"]).ended(0).out(), digest);
        std::fs::remove_file(folder.at("in/own.gz")).unwrap();
        let done = folder.siftd(["scan", "in/own"]).ended(2);
        assert!(done.out().is_empty() && done.err().contains("`siftd digest`"), "{}", done.err());
        assert_eq!(folder.siftd(["scan", "in"]).ended(0).records().len(), 1);
        assert!(!folder.siftd(["scan", "--mode", "text", "in/own"]).ended(0).records().is_empty());
    }
    let cut = folder.siftd(["scan", "--format", "report", "in/a.log"]).out();
    folder.write("cut", &cut[..cut.len() - 20]);
    assert!(folder.siftd(["digest", "cut"]).ended(2).err().contains("the report is broken"));
}

#[test]
fn filters_by_severity_and_category_and_fails_on_demand() {
    let folder = Folder::new();
    folder.write("a.log", error("boom"));
    folder.write("quiet.log", "all is well\n");
    let seen = |args: &[&str], code| folder.siftd(args.iter().copied().chain(["a.log"])).ended(code).records().len();
    assert_eq!(seen(&["scan", "--min-severity", "low"], 0), 1);
    assert_eq!(seen(&["scan", "--min-severity", "blocking"], 0), 0);
    assert_eq!(seen(&["scan", "--category", "network_error,auth_error"], 0), 0);
    assert_eq!(seen(&["scan", "--category", "network_error", "--category", "unknown_error"], 0), 1);
    assert_eq!(seen(&["scan", "--fail-on", "low"], 1), 1);
    assert_eq!(seen(&["scan", "--fail-on", "blocking"], 0), 1);
    assert_eq!(seen(&["scan", "--fail-on", "low", "gone.log"], 2), 1);
    folder.siftd(["scan", "--fail-on", "low", "quiet.log"]).ended(0);
    assert!(folder.siftd(["scan", "--min-severity", "dreadful"]).ended(2).err().contains("blocking"));
}

#[test]
fn context_is_lines_on_either_side() {
    let folder = Folder::new();
    folder.write("a.log", format!("1\n2\n3\n{}5\n6\n7\n", error("boom")));
    let context = |n: &str| folder.siftd(["scan", "--context", n, "a.log"]).ended(0).records()[0]["context"].as_array().map_or(0, Vec::len);
    assert_eq!([context("0"), context("1"), context("3")], [1, 3, 7]);
}

/// A pipe's first bytes are examined in small pieces, for the sake of the first error.
#[test]
fn context_of_a_pipe_is_what_has_arrived() {
    let folder = Folder::new();
    for before in 960..1040 {
        let log = format!("{}\n{}after\nlater\n", "x".repeat(before), error("boom"));
        folder.write("a.log", &log);
        let context = |done: Done| done.ended(0).records()[0]["context"].clone();
        let args = ["scan", "--format", "ndjson", "--context", "2"];
        assert_eq!(context(folder.piped(args, &log)), context(folder.siftd(args.into_iter().chain(["a.log"]))), "{before}");
    }
}

#[test]
fn ids_repeat_for_the_same_file_and_run_id_only() {
    let folder = Folder::new();
    folder.write("a.log", error("boom"));
    let id = |args: &[&str]| folder.siftd(args).ended(0).records()[0]["id"].clone();
    let plain = id(&["scan", "a.log"]);
    assert_eq!(plain, id(&["scan", "a.log"]));
    assert_ne!(plain, id(&["scan", "--run-id", "2", "a.log"]));
    let piped = || folder.piped(["scan"], error("boom")).records()[0]["id"].clone();
    assert_ne!(piped(), piped());
}

#[test]
fn many_jobs_say_the_same_as_one() {
    let folder = Folder::new();
    for index in 0..40_usize {
        let lines: String = (0..(index * 37) % 400).map(|n| error(&format!("file {index} line {n}"))).collect();
        folder.write(&format!("logs/{index:02}.log"), lines);
    }
    let scan = |jobs| folder.siftd(["scan", "--jobs", jobs, "--format", "unix", "logs"]).ended(0).out();
    assert_eq!(scan("1"), scan("7"));
    assert!(folder.siftd(["scan", "--jobs", "5", "--format", "report", "logs"]).ended(0).out().len() > 1000);
}

#[test]
fn a_closed_pipe_is_no_error() {
    let folder = Folder::new();
    folder.write("a.log", error("boom").repeat(20_000));
    for jobs in ["1", "4"] {
        let mut child = folder.command(["scan", "--jobs", jobs, "a.log", "a.log", "a.log"]).spawn().unwrap();
        let mut some = [0; 100];
        child.stdout.take().unwrap().read_exact(&mut some).unwrap();
        let done = Done::of(child).0;
        assert_eq!((done.status.code(), &*done.stderr), (Some(0), &b""[..]));
    }
}

#[test]
fn events_of_a_live_pipe_come_before_its_end() {
    let folder = Folder::new();
    let mut child = folder.command(["scan"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all((error("early") + "next\n").as_bytes()).unwrap();
    let mut first = vec![0; 20];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    drop(pipe);
    assert!(Done::of(child).0.status.success());
}

/// A `\r` alone ends no line (progress bars overwrite theirs with it): a file of the classic Mac OS is one line, however long.
#[test]
fn a_file_without_a_newline_is_one_line() {
    let folder = Folder::new();
    let line = |text: &str| error(text).replace('\n', "\r");
    folder.write("small.log", "fine\r".to_owned() + &line("first") + "fine\r" + &line("second"));
    folder.write("large.log", line("first") + &"all is well\r".repeat(300_000) + &line("last"));
    for name in ["small.log", "large.log"] {
        let records = folder.siftd(["scan", name]).ended(0).records();
        let lines: Vec<_> = records.iter().map(|record| record["line_num"].as_u64()).collect();
        assert_eq!(lines, [Some(1)], "{name}");
    }
}

/// What was read is written, including an error whose end was not seen, and siftd ends by the signal.
#[test]
fn an_interrupt_ends_the_input() {
    use std::os::unix::process::ExitStatusExt;
    let trace = "Traceback (most recent call last):\n  File \"/srv/a.py\", line 1, in f\n    f()\nKeyError: 'x'";
    for (args, signal, shown) in [
        (&["scan", "-"][..], "INT", "\"text\":\"KeyError: 'x'\""),
        (&["scan", "--format", "pretty"], "TERM", "2 errors: 1 high, 1 medium"),
        (&["scan", "--format", "report"], "INT", "\"summary\":{\"total\":2"),
        (&["scan", "--format", "sarif"], "INT", "\"executionSuccessful\":false"),
        (&["digest"], "INT", "2 errors: 1 high, 1 medium"),
        (&["scan", "--format", "pretty"], "HUP", "2 errors: 1 high, 1 medium"),
    ] {
        let folder = Folder::new();
        let mut child = folder.heedful(args).stdin(Stdio::piped()).spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        pipe.write_all((error("early") + "fine\n" + trace).as_bytes()).unwrap();
        let started = std::time::Instant::now();
        while rustix::io::ioctl_fionread(&pipe).unwrap() > 0 {
            assert!(started.elapsed().as_secs() < 20, "{args:?} does not read");
            std::thread::yield_now();
        }
        std::process::Command::new("kill").args([&format!("-{signal}"), &child.id().to_string()]).status().unwrap();
        let done = Done::of(child).0;
        drop(pipe);
        let out = String::from_utf8(done.stdout).unwrap();
        assert!(out.contains(shown), "{args:?}: {out}");
        let number = [("HUP", 1), ("INT", 2), ("TERM", 15)].into_iter().find(|(name, _)| *name == signal).unwrap().1;
        assert_eq!(done.status.signal(), Some(number));
        assert!(String::from_utf8(done.stderr).unwrap().contains("siftd: interrupted"));
    }
}

/// Waits until a process has opened a file: before that, a signal would end it in any case.
#[track_caller]
fn wait_open(child: &std::process::Child, path: &std::path::Path) {
    let path = path.canonicalize().unwrap();
    let started = std::time::Instant::now();
    let is_open = || {
        let mut open = std::fs::read_dir(format!("/proc/{}/fd", child.id())).unwrap().flatten();
        open.any(|fd| fd.path().read_link().is_ok_and(|to| to == path))
    };
    while !is_open() {
        assert!(started.elapsed().as_secs() < 60, "{} is not opened", path.display());
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// Without a writer, the first signal ends the wait. If a writer comes, its output is read.
#[test]
fn a_named_pipe_without_a_writer_is_waited_for_until_a_signal() {
    use std::os::unix::process::ExitStatusExt;
    let folder = Folder::new();
    let pipe = folder.at("pipe");
    assert!(folder.run("mkfifo", [&pipe]).status().unwrap().success());
    for command in ["scan", "digest"] {
        let child = folder.command([command, "pipe"]).spawn().unwrap();
        wait_open(&child, &pipe);
        let started = std::time::Instant::now();
        folder.run("kill", [child.id().to_string()]).status().unwrap();
        let done = Done::of(child).0;
        assert_eq!(done.status.signal(), Some(15), "{command}");
        assert!(started.elapsed().as_secs() < 20, "{command}");

        let child = folder.command([command, "pipe"]).spawn().unwrap();
        wait_open(&child, &pipe);
        std::fs::write(&pipe, error("late")).unwrap();
        let done = Done::of(child).0;
        assert!(done.status.success() && String::from_utf8_lossy(&done.stdout).contains("late"), "{command}: {done:?}");
    }
}

#[test]
fn rules_and_configuration_come_from_files() {
    let folder = Folder::new();
    folder.write("a.log", "reactor core breach\nvalve 7 stuck open\nhush ERROR now\n");
    folder.write("mine.toml", "[family]\nid = \"mine\"\ntitle = \"Mine\"\ndepth = \"head\"\n[[rule]]\nid = \"mine.breach\"\nliterals = [\"core breach\"]\nregex = 'core breach'\nseverity = \"blocking\"\n");
    folder.write("siftd.toml", "[error_detection]\ncustom_patterns = [{ pattern = 'valve \\d+ stuck', type = \"regex\", severity = \"high\", category = \"runtime_error\" }]\nnoise_patterns = [\"hush\"]\nseverity_overrides = { \"mine.breach\" = \"low\" }\n[rules]\nfiles = [\"mine.toml\"]\n");
    assert_eq!(folder.siftd(["scan", "--rules", "mine.toml", "a.log"]).ended(0).records()[0]["rule"], "mine.breach");
    let records = folder.siftd(["scan", "--config", "siftd.toml", "a.log"]).ended(0).records();
    let found: Vec<_> = records.iter().map(|record| (record["rule"].as_str().unwrap(), record["severity"].as_str().unwrap())).collect();
    assert_eq!(found, [("mine.breach", "low"), ("custom.pattern-1", "high")]);
    folder.write("ours.toml", "[family]\nid = \"ours\"\ntitle = \"Ours\"\ndepth = \"head\"\n[[rule]]\nid = \"ours.bad\"\nliterals = [\"command not found\"]\nregex = '^bash: .*command not found'\nseverity = \"low\"\n");
    folder.write("b.log", "bash: line 3: gizmo: command not found\n");
    let rule = |arguments: &[&str]| folder.siftd(arguments).ended(0).records()[0]["rule"].as_str().unwrap().to_owned();
    assert!(!rule(&["scan", "b.log"]).starts_with("ours"));
    assert_eq!(rule(&["scan", "--rules", "ours.toml", "b.log"]), "ours.bad", "before a built-in rule that finds the line as well");
    folder.write("time.toml", "[error_detection]\ncustom_patterns = [{ pattern = '^2026-01-01 .* the pump hums', type = \"regex\" }]\nnoise_patterns = [{ pattern = '^2026-01-02 ', type = \"regex\" }]\n");
    folder.write("t.log", "2026-01-01 10:00:00 the pump hums\n2026-01-02 10:00:00 ERROR hush\n");
    let records = folder.siftd(["scan", "--config", "time.toml", "t.log"]).ended(0).records();
    assert_eq!(records.iter().map(|record| record["line_num"].as_u64().unwrap()).collect::<Vec<_>>(), [1]);
    folder.write("warn.toml", "[error_detection]\nwarnings = true\n");
    folder.write(
        "w.log",
        "10:00:00 WARN disk is nearly full\na.c:1:2: warning: unused variable 'x'\n{\"level\":\"warn\",\"msg\":\"Error: x\"}\nERROR disk is full\n",
    );
    let records = folder.siftd(["scan", "--config", "warn.toml", "w.log"]).ended(0).records();
    let found: Vec<_> = records.iter().map(|record| (record["line_num"].as_u64().unwrap(), record["severity"].as_str().unwrap())).collect();
    assert_eq!(found, [(1, "low"), (2, "low"), (3, "low"), (4, "medium")]);
    assert_eq!(folder.siftd(["scan", "w.log"]).ended(0).records().len(), 1);
    folder.write("off.toml", "[error_detection]\nenabled = false\n");
    assert!(folder.siftd(["scan", "--config", "off.toml", "a.log"]).ended(0).records().is_empty());
    let wrong = folder.siftd(["scan", "--config", "gone.toml", "a.log"]).ended(2);
    assert!(wrong.err().starts_with("error: gone.toml"), "{}", wrong.err());
}

/// A line may lead to so many rules, and be so long, that not all of them are tried: that is reported.
#[test]
fn a_line_that_asks_too_much_is_told_of() {
    let folder = Folder::new();
    let patterns: String = (0..65).map(|n| format!("{{ pattern = 'pump {n}: \\d', type = \"regex\" }},")).collect();
    folder.write("siftd.toml", format!("[error_detection]\ncustom_patterns = [{patterns}]\n"));
    let pumps: String = (0..65).map(|n| format!("pump {n}: ")).collect();
    folder.write("long.log", format!("10:00:00 ERROR {pumps}{}\n", "x".repeat(2 << 20)));
    folder.write("usual.log", format!("10:00:00 ERROR {pumps}{}\n", "x".repeat(32 << 10)));

    let long = folder.siftd(["scan", "--config", "siftd.toml", "long.log"]).ended(0);
    assert!(long.records().is_empty());
    assert!(long.err().contains("long.log: 1 line led to more rules than are asked of one line"), "{}", long.err());
    let why = folder.siftd(["explain", "--config", "siftd.toml", "long.log:1"]).ended(0).out();
    assert!(why.contains("would hold, but was not asked"), "{}", why.replace('x', ""));

    let usual = folder.siftd(["scan", "--config", "siftd.toml", "usual.log"]).ended(0);
    assert_eq!((usual.records().len(), usual.err().as_str()), (1, ""));
}

/// The head of a family, and a section of it that lists what failed.
fn crew_report(before: &str, max_lines: u32) -> String {
    let section = r#"[[region]]
id = "mine.section"
literals = ["== crew report =="]
open = '^== crew report ==$'
close = '^== end ==$'
max_lines = LINES
examples = { no_match = ["== crew report ==\n== end =="] }

[[trace]]
id = "mine.lost"
region = "mine.section"
category = "test_failure"
rows = [
    { from = "start", regex = '^lost: (?P<message>.*)', to = "crew", take = "text" },
    { from = "crew", regex = '^ - \w+$', to = "crew", take = "frame" },
]
examples = { match = ["== crew report ==\nlost: boat 3\n - anna"] }
"#;
    let head = "[family]\nid = \"mine\"\ntitle = \"Mine\"\ndepth = \"head\"\n\n";
    format!("{head}{before}{}", section.replace("LINES", &max_lines.to_string()))
}

/// A section has a maximum number of lines: after it, nothing of the section starts any more, and what has started continues.
#[test]
fn a_section_that_lasts_too_long_cuts_no_trace() {
    let folder = Folder::new();
    folder.write("mine.toml", crew_report("", 3));
    folder.write("a.log", "== crew report ==\nlost: boat 3\n - anna\n - ben\n - carl\n - dora\nlost: boat 4\n - emil\n");
    let events = folder.siftd(["scan", "--format", "ndjson", "--rules", "mine.toml", "a.log"]).ended(0).records();
    assert_eq!(events.iter().map(|event| (event["line_num"].as_u64(), event["line_end"].as_u64())).collect::<Vec<_>>(), [(Some(2), Some(6))]);
}

/// However deep the runs with a verdict are nested, a section that lists what failed finds a place inside them.
#[test]
fn a_section_inside_three_runs_lists_what_failed() {
    let run = |name: &str| {
        format!(
            "[[region]]\nid = \"mine.{name}\"\nliterals = [\"{name} begins\"]\nopen = '^{name} begins$'\nclose = '^all done$'\npass = '^all well$'\nmax_lines = 50\n\
             examples = {{ no_match = [\"{name} begins\\nall well\"] }}\n\n"
        )
    };
    let folder = Folder::new();
    folder.write("mine.toml", crew_report(&[run("harbour"), run("fleet"), run("crew")].concat(), 30));
    folder.write("a.log", "harbour begins\nfleet begins\ncrew begins\n== crew report ==\nlost: boat 3\n - anna\n== end ==\nlost: boat 4\nall done\n");
    let events = folder.siftd(["scan", "--format", "ndjson", "--rules", "mine.toml", "a.log"]).ended(0).records();
    assert_eq!(events.iter().map(|event| (event["line_num"].as_u64(), event["line_end"].as_u64())).collect::<Vec<_>>(), [(Some(5), Some(6))]);
}

/// A name with a bracket may be a file that is missing, and a variable may be empty.
#[test]
fn a_name_that_is_no_pattern_or_no_name_is_said_to_be_that() {
    let folder = Folder::new();
    let err = folder.siftd(["scan", "build[12.log"]).ended(2).err();
    assert!(err.starts_with("siftd: build[12.log: there is no such file, and read as a pattern it is wrong: unclosed character class"), "{err}");
    let err = folder.siftd(["scan", ""]).ended(2).err();
    assert!(err.contains("tip: a file name is empty (\"\"), perhaps from a variable"), "{err}");
}
