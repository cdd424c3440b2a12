//! The forms of a value in JSON, HTML and shells. Each has several ways to write the same, and no program mixes them.

/// The value with each character replaced by its form in `written`.
fn each(value: &str, written: impl Fn(char) -> Option<String>) -> String {
    value.chars().fold(String::with_capacity(value.len()), |mut out, c| {
        match written(c) {
            Some(text) => out.push_str(&text),
            None => out.push(c),
        }
        out
    })
}

/// The characters that JSON writes as numbers without need.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Numbers {
    No,
    Foreign,
    /// Foreign ones, and those with a meaning in HTML.
    Marks,
}

/// The forms of a value in JSON, and in JSON inside a string of JSON.
pub(crate) fn json(value: &str) -> Vec<String> {
    let mut forms = Vec::new();
    for numbers in [Numbers::No, Numbers::Foreign, Numbers::Marks] {
        for (slashes, upper) in [(false, false), (true, false), (false, true), (true, true)] {
            forms.push(json_once(value, numbers, slashes, upper));
        }
    }
    let twice = |numbers| json_once(&json_once(value, numbers, false, false), Numbers::No, false, false);
    forms.extend([twice(Numbers::No), twice(Numbers::Foreign)]);
    forms
}

/// The form in JSON that most programs write.
pub(crate) fn json_plain(value: &str) -> String {
    json_once(value, Numbers::No, false, false)
}

fn json_once(value: &str, numbers: Numbers, slashes: bool, upper: bool) -> String {
    let number = |c: char| -> String {
        let units = c.encode_utf16(&mut [0; 2]).to_vec();
        let unit = |unit: u16| if upper { format!("\\u{unit:04X}") } else { format!("\\u{unit:04x}") };
        units.into_iter().map(unit).collect()
    };
    each(value, |c| match c {
        '"' | '\\' => Some(format!("\\{c}")),
        '/' if slashes => Some("\\/".to_owned()),
        '\n' => Some("\\n".to_owned()),
        '\r' => Some("\\r".to_owned()),
        '\t' => Some("\\t".to_owned()),
        '\u{8}' => Some("\\b".to_owned()),
        '\u{c}' => Some("\\f".to_owned()),
        '<' | '>' | '&' if numbers == Numbers::Marks => Some(number(c)),
        c if c.is_ascii_control() || (!c.is_ascii() && numbers != Numbers::No) => Some(number(c)),
        _ => None,
    })
}

/// Every character as a number, also those that need no escape: in the forms of JSON, C, shells and HTML.
pub(crate) fn each_character(value: &str) -> Vec<String> {
    let mut forms = Vec::new();
    for upper in [false, true] {
        let units = |c: char| -> String {
            let unit = |unit: u16| if upper { format!("\\u{unit:04X}") } else { format!("\\u{unit:04x}") };
            c.encode_utf16(&mut [0; 2]).iter().map(|code| unit(*code)).collect()
        };
        forms.push(value.chars().map(units).collect());
        let byte = |byte: u8| if upper { format!("\\x{byte:02X}") } else { format!("\\x{byte:02x}") };
        forms.push(value.bytes().map(byte).collect());
        let mark = |c: char| {
            let number = u32::from(c);
            if upper { format!("&#x{number:X};") } else { format!("&#x{number:x};") }
        };
        forms.push(value.chars().map(mark).collect());
    }
    forms.push(value.bytes().map(|byte| format!("\\{byte:03o}")).collect());
    forms.push(value.chars().map(|c| format!("&#{};", u32::from(c))).collect());
    forms
}

pub(crate) fn html(value: &str) -> Vec<String> {
    let ways = [
        ("\"", "'", "/"),
        ("&quot;", "'", "/"),
        ("&quot;", "&#39;", "/"),
        ("&quot;", "&#039;", "/"),
        ("&quot;", "&#x27;", "/"),
        ("&quot;", "&#x27;", "&#x2F;"),
        ("&quot;", "&#39;", "&#x2F;"),
        ("&quot;", "&apos;", "/"),
        ("&#34;", "&#39;", "/"),
    ];
    let way = |(double, single, slash): (&str, &str, &str)| {
        each(value, |c| match c {
            '&' => Some("&amp;".to_owned()),
            '<' => Some("&lt;".to_owned()),
            '>' => Some("&gt;".to_owned()),
            '"' => Some(double.to_owned()),
            '\'' => Some(single.to_owned()),
            '/' => Some(slash.to_owned()),
            _ => None,
        })
    };
    ways.map(way).to_vec()
}

/// The forms in single quotes, in double quotes, after a dollar, and without quotes.
pub(crate) fn shell(value: &str) -> Vec<String> {
    let escaped = |is_plain: fn(char) -> bool| each(value, |c| (!is_plain(c)).then(|| format!("\\{c}")));
    let dollar = |octal: bool| {
        each(value, |c| match c {
            '\\' | '\'' => Some(format!("\\{c}")),
            '\n' => Some("\\n".to_owned()),
            '\r' => Some("\\r".to_owned()),
            '\t' => Some("\\t".to_owned()),
            '\u{1b}' => Some("\\E".to_owned()),
            c if c.is_ascii_control() || (octal && !c.is_ascii()) => {
                Some(c.encode_utf8(&mut [0; 4]).bytes().map(|byte| format!("\\{byte:03o}")).collect())
            }
            _ => None,
        })
    };
    vec![
        value.replace('\'', "'\\''"),
        value.replace('\'', "'\"'\"'"),
        dollar(false),
        dollar(true),
        escaped(|c| !"\\\"$`".contains(c)),
        escaped(|c| !"\\\"$`!".contains(c)),
        // First in bash's form, then in those of libraries.
        escaped(|c| !" \t!\"$&'()*,;<>?[\\]^`{|}".contains(c)),
        escaped(|c| !" \t!\"$&'()*,;<>?[\\]^`{|}#~".contains(c)),
        escaped(|c| c.is_alphanumeric() || "_-.,:+/@\n".contains(c)),
        escaped(|c| c.is_alphanumeric() || "_-./".contains(c)),
    ]
}
