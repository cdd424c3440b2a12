//! Lists of tools and commands in the configuration, turned into rules.

use lathe_protocol::Verdict;

use crate::file::RuleFile;
use crate::rules::{Rule, Rulebook, Tier};

impl Rulebook {
    /// Denies commands that begin with these words, in any spelling, above all other rules. `why` names the setting
    /// they are in.
    pub fn without_commands(mut self, why: &str, commands: impl IntoIterator<Item = Vec<String>>) -> Self {
        let commands = commands.into_iter().filter(|words| !words.is_empty());
        let rules = commands.map(|words| {
            let rule = deny_rule(why, &words.join(" "));
            Rule { command: vec![words], ..rule }
        });
        let file = RuleFile { default: None, rules: rules.collect() };
        self.tiers.insert(0, (Tier::Admin, file));
        self
    }

    /// Allows commands that begin with these words, as a rule of the user's does. `why` names the setting they are
    /// in.
    pub fn with_commands(self, why: &str, commands: impl IntoIterator<Item = Vec<String>>) -> Self {
        let commands = commands.into_iter().filter(|words| !words.is_empty());
        self.allowing(commands.map(|words| Rule { command: vec![words], ..allow_rule(why) }))
    }

    /// Allows tools by every name that they have.
    pub fn with_tools(self, why: &str, tools: impl IntoIterator<Item = String>) -> Self {
        self.allowing(tools.into_iter().map(|name| Rule { tool: vec![name], ..allow_rule(why) }))
    }

    fn allowing(mut self, rules: impl Iterator<Item = Rule>) -> Self {
        self.tiers.push((Tier::User, RuleFile { default: None, rules: rules.collect() }));
        self.tiers.sort_by_key(|(tier, _)| std::cmp::Reverse(*tier));
        self
    }

    /// Denies tools by every name that they have.
    pub fn without_tools(mut self, why: &str, tools: impl IntoIterator<Item = String>) -> Self {
        let rules = tools.into_iter().map(|name| Rule { tool: vec![name.clone()], ..deny_rule(why, &name) });
        let file = RuleFile { default: None, rules: rules.collect() };
        self.tiers.insert(0, (Tier::Admin, file));
        self
    }
}

/// A rule that allows because of a setting.
fn allow_rule(setting: &str) -> Rule {
    Rule {
        file: setting.to_owned(),
        decision: Verdict::Allow,
        reason: "it is in the list of allowed tools".to_owned(),
        ..Rule::default()
    }
}

/// The denial of something that a setting excludes.
fn deny_rule(setting: &str, what: &str) -> Rule {
    Rule {
        file: setting.to_owned(),
        decision: Verdict::Deny,
        reason: format!("`{what}` is in the list of excluded tools"),
        ..Rule::default()
    }
}
