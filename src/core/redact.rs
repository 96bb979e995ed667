//! stub
use std::borrow::Cow;
pub struct Redactor;
impl Redactor { pub fn builtin()->&'static Redactor { &Redactor } pub fn redact<'a>(&self, text:&'a str, _c:&mut u32)->Cow<'a,str>{Cow::Borrowed(text)} pub fn redact_lines(&self,_l:&mut Vec<String>,_c:&mut u32){} }
