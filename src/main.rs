//! temporary
use std::io::{Read, Write};
use std::sync::Arc;
use siftd::core::{engine::{Engine, Limits}, event::Timestamp, extract::Origin, pipeline::Stream};
fn main() {
    let engine = Arc::new(Engine::new(siftd::rules::RuleSet::builtin(), Limits::default()));
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args[0] == "signature" {
        let mut s = String::new(); std::io::stdin().read_to_string(&mut s).unwrap();
        for l in s.lines() { let mut o = String::new(); siftd::core::signature::normalise(l, &mut o); let (a,_) = siftd::core::signature::signature(None, "", &[], l, &[]); println!("{a}\t{o}"); }
        return;
    }
    let files: Vec<&String> = args[1..].iter().filter(|a| !a.starts_with("--") && *a != "ndjson" && *a != "1").collect();
    let mut out = Vec::new();
    let now = Timestamp(std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_micros() as i64);
    for f in files {
        let mut s = Stream::new(engine.clone(), Origin::default());
        let mut file = std::fs::File::open(f).unwrap();
        let env = siftd::sinks::record::Envelope { host: "h".into(), name: "scan".into(), kind: "file", path: Some(f.to_string()) };
        let mut ev = Vec::new();
        loop { let n = file.read(s.space()).unwrap(); if n == 0 { s.finish(now, &mut ev); } else { s.advance(n, now, &mut ev); }
          for e in ev.drain(..) { siftd::sinks::record::write(&mut out, &env, &e, 30<<10); }
          if out.len() > 1<<16 || n == 0 { std::io::stdout().write_all(&out).unwrap(); out.clear(); }
          if n == 0 { break } }
        if std::env::var("STATS").is_ok() { eprintln!("{:?}", s.counts()); }
    }
}
