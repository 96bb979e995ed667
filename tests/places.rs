//! Where an error is, as the tool that found it says: whatever a container, a build tool or a CI
//! service puts before each line, it is one event with the same lines, file, line and column.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use siftd::core::engine::{Engine, Limits};
use siftd::core::event::{Event, Timestamp};
use siftd::core::extract::Origin;
use siftd::core::pipeline::Stream;
use siftd::rules::RuleSet;

const NOW: Timestamp = Timestamp(1_795_183_200_000_000);

/// What is printed, how many of its lines belong to the error, and the error's location.
const PRINTED: &[(&str, u64, &str, u32, u32)] = &[
    ("src/cart.ts(5,9): error TS2322: Type 'string' is not assignable to type 'number'.", 1, "src/cart.ts", 5, 9),
    ("src/cart.c:12:5: error: 'total' undeclared (first use in this function)", 1, "src/cart.c", 12, 5),
    ("Traceback (most recent call last):\n  File \"/srv/main.py\", line 12, in <module>\n    run()\nKeyError: 'price'", 4, "/srv/main.py", 12, 0),
    ("TypeError: x is not a function\n    at total (/srv/till.js:3:7)\n    at main (/srv/app.js:9:5)", 3, "/srv/till.js", 3, 7),
    ("Exception in thread \"main\" java.lang.IllegalStateException: no\n\tat com.acme.Ledger.load(Ledger.java:5)", 2, "Ledger.java", 5, 0),
    ("error[E0425]: cannot find value `y` in this scope\n --> src/cart.rs:12:5\n  |\n12 |     let x = y;\n  |             ^", 5, "src/cart.rs", 12, 5),
    ("thread 'main' (7) panicked at src/main.rs:14:44:\ncalled `Option::unwrap()` on a `None` value", 2, "src/main.rs", 14, 44),
    ("panic: no stock\n\ngoroutine 1 [running]:\nmain.total(0xc000012345)\n\t/srv/till.go:7 +0x1d", 5, "/srv/till.go", 7, 0),
];

/// The prefix of each line; `‹n›` is its number.
const PREFIXES: &[&str] = &[
    "",
    "#12 3.45‹n› ",
    "2026-11-20T14:00:0‹n›.1234567Z ",
    "2026-11-20T14:00:0‹n›.123456Z 01O ",
    "2026-11-20T14:00:0‹n›.123456789Z stderr F ",
    "[2026-11-20T14:00:0‹n›.123Z] ",
    "\u{1b}_bk;t=170000000000‹n›\u{7}",
    "14:00:0‹n› web.1  | ",
    "web-1  | ",
    "[pod/shop-7d9f8b6c5-x2x4z/web] ",
    "@acme/shop: ",
    "@acme/shop:build: ",
    "packages/shop build: ",
    "Nov 20 14:00:0‹n› web-1 shopd[4711]: ",
    "2026-11-20T14:00:0‹n›.123456+00:00 app[web.1]: ",
    "2026-11-20T14:00:0‹n›.123000+00:00 ecs/shop/0f1e2d3c4b5a69788796a5b4c3d2e1f0 ",
    "2026-11-20T14:00:0‹n›Z app[0f1e2d3c] fra [info] ",
    "   2026-11-20T14:00:0‹n›.12+0000 [APP/PROC/WEB/0] ERR ",
    "2026-11-20 14:00:0‹n› ",
    "2026-11-20 14:00:0‹n›.123456789  ",
    "2026-11-20 14:00:0‹n› shop[20261119t095501]  ",
    "2026-11-20 14:00:0‹n›.123456 | node-1 | ",
    "14:00:0‹n› ",
    "14:00:0‹n›  ",
    "[14:00:0‹n›] ",
    "[14:00:0‹n›] :\t [Step 1/2] ",
    "@4000000065b9a2f4000000‹n›0 ",
    "shop.1.q7v0f3m1x2y3z4a5b6c7d8e9f@node-1    | ",
    "shop-7d4f5c9b8-x2x7z shop ",
    "[shop] ",
    "[shop]: ",
    "[@acme/shop]: ",
    "[default0]:",
    "[1,0]<stderr>:",
    "(train pid=2211) ",
];

fn events(engine: &Arc<Engine>, text: &str) -> Vec<Event> {
    let (mut stream, mut events) = (Stream::new(Arc::clone(engine), Origin::default()), Vec::new());
    stream.push(text.as_bytes(), NOW, &mut events);
    stream.finish(NOW, &mut events);
    events
}

#[test]
fn an_error_has_its_place_behind_any_prefix() {
    let engine = Arc::new(Engine::new(RuleSet::compiled(), Limits::default()));
    let mut wrong = Vec::new();
    for prefix in PREFIXES {
        for &(printed, lines, file, line, column) in PRINTED {
            let all: Vec<&str> = ["starting"].into_iter().chain(printed.lines()).chain(["done"]).collect();
            let text: String = (0..).zip(&all).map(|(number, line)| format!("{}{line}\n", prefix.replace("‹n›", &u32::to_string(&(number % 10))))).collect();
            let found: Vec<_> = events(&engine, &text)
                .iter()
                .map(|event| {
                    let place = event.location.clone().unwrap_or_default();
                    (event.line_num, event.line_end, place.file, place.line, place.column)
                })
                .collect();
            if found != [(2, lines + 1, file.to_owned(), line, column)] {
                wrong.push(format!("{prefix:?} {:?}: {found:?}", all[1]));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// GitHub and Azure put their tag only before the first line of a message.
#[test]
fn the_tag_of_a_runner_is_no_part_of_the_file() {
    let engine = Arc::new(Engine::new(RuleSet::compiled(), Limits::default()));
    for &(printed, lines, file, line, column) in PRINTED {
        for tag in ["##[error]", "2026-11-20T14:00:00.1234567Z ##[error]"] {
            let found = events(&engine, &format!("{tag}{printed}\n"));
            let places: Vec<_> = found.iter().map(|event| (event.line_end, event.location.clone().unwrap_or_default())).collect();
            let [(end, place)] = &places[..] else { panic!("{tag}{printed}: {places:?}") };
            assert_eq!((*end, place.file.as_str(), place.line, place.column), (lines, file, line, column), "{tag}{printed}");
        }
    }
}

#[test]
fn a_line_above_names_the_file_of_those_below() {
    let engine = Arc::new(Engine::new(RuleSet::compiled(), Limits::default()));
    let listing = "/srv/app/till.js\n  3:7   error    'a' is not defined  no-undef\n  4:1   warning  'b' is dull  no-dull\n  12:3  error    'c' is not defined  no-undef\n\n  5:1  error    'd' has no heading  no-undef\n";
    for prefix in ["", "#7 0.123 ", "web-1  | "] {
        let text: String = listing.lines().map(|line| format!("{prefix}{line}\n")).collect();
        let places: Vec<_> = events(&engine, &text).into_iter().map(|event| event.location.map(|place| (place.file, place.line, place.column))).collect();
        let at = |line, column| Some(("/srv/app/till.js".to_owned(), line, column));
        assert_eq!(places, [at(3, 7), at(12, 3), None], "{prefix}");
    }
}
