//! The message catalogue of all surfaces, in English and Chinese next to each other.
//!
//! A message is named by its id. A fixed text is a [`Say`]; a text with values is a [`Tell`], whose members are the
//! values with their types; a number with the thing it counts is a [`Noun`]. Where two surfaces word the same thing
//! differently, each has an id of its own. Help, warnings and errors stay English, errors with a stable code, and are
//! not here.
//!
//! Each surface has a file. A file is one macro: it adds its messages to those of the files before it and passes all of
//! them to the next macro in the list, so that [`Say`] and [`Tell`] are one enum each.

#[macro_use]
mod commands;
#[macro_use]
mod console;
#[macro_use]
mod page;
#[macro_use]
mod server;

use lathe_protocol::{Ending, ItemKind, ItemState, Seq, SessionState, StepNo, Verdict, counted};

/// The language of a surface.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Language {
    #[default]
    English,
    Chinese,
}

impl Language {
    /// The language that a locale (`zh_CN.UTF-8`) or a list of languages (`zh-CN,en`) begins with.
    pub fn of(name: &str) -> Self {
        match name.get(..2) {
            Some(first) if first.eq_ignore_ascii_case("zh") => Language::Chinese,
            Some(_) | None => Language::English,
        }
    }

    /// The tag of the `lang` attribute.
    pub(crate) fn tag(self) -> &'static str {
        match self {
            Language::English => "en",
            Language::Chinese => "zh-CN",
        }
    }

    /// The tag without a region.
    pub fn primary_tag(self) -> &'static str {
        self.tag().get(..2).unwrap_or_default()
    }

    /// The comma between two parts of a line.
    pub fn comma(self) -> &'static str {
        match self {
            Language::English => ", ",
            Language::Chinese => "，",
        }
    }

    /// The colon between a label and its value.
    pub fn colon(self) -> &'static str {
        match self {
            Language::English => ": ",
            Language::Chinese => "：",
        }
    }
}

macro_rules! define_messages {
    (
        []
        { $($say:ident: $say_english:literal, $say_chinese:literal;)* }
        { $($tell:ident { $($name:ident: $type:ty),* }: $tell_english:literal, $tell_chinese:literal;)* }
    ) => {
        /// A message without values.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Say {
            $($say,)*
        }

        impl Say {
            pub fn text(self, language: Language) -> &'static str {
                match (self, language) {
                    $(
                        (Say::$say, Language::English) => $say_english,
                        (Say::$say, Language::Chinese) => $say_chinese,
                    )*
                }
            }
        }

        /// A message with values.
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub enum Tell<'a> {
            $($tell { $($name: $type),* },)*
        }

        impl Tell<'_> {
            pub fn text(&self, language: Language) -> String {
                match (self, language) {
                    $(
                        (Tell::$tell { $($name),* }, Language::English) => format!($tell_english),
                        (Tell::$tell { $($name),* }, Language::Chinese) => format!($tell_chinese),
                    )*
                }
            }
        }

        /// Every message with its id, its English and its Chinese text.
        #[cfg(test)]
        const MESSAGES: &[(&str, &str, &str)] = &[
            $((stringify!($say), $say_english, $say_chinese),)*
            $((stringify!($tell), $tell_english, $tell_chinese),)*
        ];
    };
}

macro_rules! define_nouns {
    ($($noun:ident: $english:literal, $chinese:literal;)*) => {
        /// A thing that is counted.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Noun {
            $($noun,)*
        }

        impl Noun {
            /// The noun in the singular; in Chinese with its measure word.
            fn one(self, language: Language) -> &'static str {
                match (self, language) {
                    $(
                        (Noun::$noun, Language::English) => $english,
                        (Noun::$noun, Language::Chinese) => $chinese,
                    )*
                }
            }
        }

        #[cfg(test)]
        const NOUNS: &[(&str, &str, &str)] = &[$((stringify!($noun), $english, $chinese),)*];
    };
}

console_messages!([commands_messages page_messages server_messages define_messages] {} {});

define_nouns! {
    Blob: "blob", "个数据块";
    Call: "call", "次调用";
    Change: "change", "处改动";
    Definition: "definition", "个定义";
    Difference: "difference", "处差异";
    Divergence: "divergence", "处偏差";
    Event: "event", "个事件";
    File: "file", "个文件";
    HiddenCharacter: "more character", "个字符未显示";
    HiddenLine: "more line", "行未显示";
    Item: "item", "项";
    Leftover: "leftover", "个残留文件";
    Line: "line", "行";
    Name: "name", "个名称";
    Request: "request", "次请求";
    Session: "session", "个会话";
    Step: "step", "步";
    Token: "token", "个词元";
    Use: "use", "处引用";
}

impl Noun {
    /// A number of such things: "1 file", "2 files", "2 个文件".
    pub fn count(self, count: impl TryInto<u64>, language: Language) -> String {
        let count = count.try_into().unwrap_or(u64::MAX);
        match language {
            Language::English => counted(count, self.one(language)),
            Language::Chinese => format!("{count} {}", self.one(language)),
        }
    }

    /// The word after a number that is printed in a column of its own.
    pub fn word(self, count: impl TryInto<u64>, language: Language) -> String {
        let text = self.count(count, language);
        text.split_once(' ').map(|(_, word)| word.to_owned()).unwrap_or(text)
    }
}

impl Say {
    /// The text as the label of the value that follows it.
    pub fn label(self, language: Language) -> String {
        format!("{}{}", self.text(language), language.colon())
    }

    /// The word for the state of a session.
    pub fn state(state: SessionState) -> Self {
        match state {
            SessionState::New => Say::StateNew,
            SessionState::Running => Say::StateRunning,
            SessionState::Completed => Say::StateCompleted,
            SessionState::Error => Say::StateError,
            SessionState::Cancelled => Say::StateCancelled,
            SessionState::Interrupted => Say::StateInterrupted,
        }
    }

    /// The words for an ending.
    pub fn ending(ending: Ending) -> Self {
        match ending {
            Ending::Done => Say::Done,
            Ending::Answered => Say::Answered,
            Ending::Failed => Say::NotDone,
            Ending::ModelUnavailable => Say::ModelUnavailable,
            Ending::StepsUsedUp => Say::StepsUsedUp,
            Ending::BudgetUsedUp => Say::BudgetUsedUp,
            Ending::Denied => Say::DeniedByPolicy,
            Ending::DiskFull => Say::DiskFull,
            Ending::Cancelled => Say::Cancelled,
        }
    }

    /// The word for a decision of the gate.
    pub fn decision(decision: Verdict) -> Self {
        match decision {
            Verdict::Allow => Say::DecisionAllow,
            Verdict::Ask => Say::DecisionAsk,
            Verdict::Deny => Say::DecisionDeny,
        }
    }

    /// The word for the state of an item that needs trust.
    pub fn item_state(state: ItemState) -> Self {
        match state {
            ItemState::Trusted => Say::ItemTrusted,
            ItemState::Refused => Say::ItemRefused,
            ItemState::Changed => Say::ItemChanged,
            ItemState::New => Say::ItemNew,
            ItemState::Gone => Say::ItemGone,
        }
    }

    /// The word for the kind of an item that needs trust.
    pub fn item_kind(kind: ItemKind) -> Self {
        match kind {
            ItemKind::Instructions => Say::ItemInstructions,
            ItemKind::Check => Say::ItemCheck,
            ItemKind::Field => Say::ItemField,
            ItemKind::TraeConfig => Say::ItemTraeConfig,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_han(sign: char) -> bool {
        ('\u{4e00}'..='\u{9fff}').contains(&sign)
    }

    /// The names of the values in a text, in the order of the alphabet.
    fn values(text: &str) -> Vec<&str> {
        let pieces = text.split('{').skip(1).filter_map(|piece| piece.split(['}', ':']).next());
        let mut names: Vec<&str> = pieces.collect();
        names.sort_unstable();
        names
    }

    /// The text without its values.
    fn fixed(text: &str) -> String {
        text.split('{').map(|piece| piece.split_once('}').map_or(piece, |(_, rest)| rest)).collect()
    }

    #[test]
    fn every_message_is_there_in_both_languages_with_the_same_values_and_without_markup() {
        let mut ids = std::collections::BTreeSet::new();
        for (id, english, chinese) in MESSAGES {
            assert!(ids.insert(id), "{id} is there twice");
            for text in [english, chinese] {
                let markup = fixed(text).replace("->", "").contains(['<', '>', '&', '"']);
                assert!(!text.trim().is_empty() && !markup, "{id}");
            }
            assert_eq!(values(english), values(chinese), "{id}");
        }
        // The name of the program is the same everywhere.
        let all = MESSAGES.iter().chain(NOUNS);
        let with_words = all.filter(|(_, english, _)| fixed(english).contains(char::is_alphabetic));
        let untranslated: Vec<&str> =
            with_words.filter(|(_, _, chinese)| !chinese.contains(is_han)).map(|(id, _, _)| *id).collect();
        assert_eq!(untranslated, ["Version"]);
    }

    #[test]
    fn chinese_has_its_own_punctuation_and_a_space_next_to_latin_words() {
        for (id, _, chinese) in MESSAGES.iter().chain(NOUNS) {
            // This value brings brackets of its own.
            let chinese = chinese.replace("{cached}", "");
            for (first, second) in chinese.chars().zip(chinese.chars().skip(1)) {
                let next_to_han =
                    |test: fn(char) -> bool| is_han(first) && test(second) || test(first) && is_han(second);
                let is_half_width = |sign: char| ",;:!?()".contains(sign) || sign == '.';
                assert!(!next_to_han(is_half_width), "{id}: {first}{second} in {chinese}");
                let is_latin = |sign: char| sign.is_ascii_alphanumeric() || sign == '`';
                assert!(!next_to_han(is_latin), "{id}: {first}{second} in {chinese}");
                // A value begins with a number or a Latin word; what it ends with is not known.
                assert!(!(is_han(first) && second == '{'), "{id}: {first}{second} in {chinese}");
            }
        }
    }

    /// Words that would be a second name for a thing, with the name it has.
    const SECOND_NAMES: [(&str, &str); 16] = [
        ("目录", "文件夹"),
        ("撤消", "撤销"),
        ("还原", "恢复"),
        ("沙盒", "沙箱"),
        ("工作空间", "工作区"),
        ("对话框", "会话"),
        ("授权", "批准"),
        ("准许", "允许"),
        ("供应商", "提供商"),
        ("提供方", "提供商"),
        ("口令", "令牌"),
        ("代币", "令牌"),
        ("规定", "规则"),
        ("评审员", "评审"),
        ("审查", "评审"),
        ("隔离库", "隔离区"),
    ];

    #[test]
    fn a_thing_has_one_name_in_chinese() {
        for (id, _, chinese) in MESSAGES.iter().chain(NOUNS) {
            for (second, first) in SECOND_NAMES {
                assert!(!chinese.contains(second), "{id}: {second} is called {first}: {chinese}");
            }
        }
    }

    #[test]
    fn the_values_of_a_message_stand_in_both_languages() {
        let retry = Tell::Retry { seconds: 1.25, reason: "slow" };
        assert_eq!(retry.text(Language::English), "asking the model again in 1.2 s: slow");
        assert_eq!(retry.text(Language::Chinese), "1.2 秒后重新请求模型：slow");
        for language in [Language::English, Language::Chinese] {
            assert!(Tell::ResumeHint { id: "a-1" }.text(language).ends_with("lathe resume a-1"));
            assert!(Tell::DeniedCalls { count: 3 }.text(language).starts_with("3 "));
        }
    }

    #[test]
    fn a_number_has_a_noun_and_a_label_has_a_colon() {
        let counted = |noun: Noun, count: u32| {
            [Language::English, Language::Chinese].map(|language| noun.count(count, language))
        };
        assert_eq!(counted(Noun::File, 1), ["1 file", "1 个文件"]);
        assert_eq!(counted(Noun::Step, 2), ["2 steps", "2 步"]);
        assert_eq!(counted(Noun::HiddenLine, 12), ["12 more lines", "12 行未显示"]);
        assert_eq!(Noun::Step.word(1_u32, Language::English), "step");
        assert_eq!(Say::Session.label(Language::English), "session: ");
        assert_eq!(Say::Session.label(Language::Chinese), "会话：");
    }

    #[test]
    fn a_language_is_known_by_how_its_name_begins() {
        for (name, language) in [
            ("zh_CN.UTF-8", Language::Chinese),
            ("ZH", Language::Chinese),
            ("zh-CN,en;q=0.5", Language::Chinese),
            ("en_US", Language::English),
            ("C", Language::English),
            ("", Language::English),
            ("é", Language::English),
        ] {
            assert_eq!(Language::of(name), language, "{name}");
        }
        assert_eq!(["zh", "en"], [Language::Chinese, Language::English].map(Language::primary_tag));
    }
}
