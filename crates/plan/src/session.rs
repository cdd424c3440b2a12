//! Plans of sessions: of new ones, and of resumed ones.

use std::path::PathBuf;

use lathe_config::RunSection;
use lathe_host::{Attended, Extras, ModeWish, Overrides, SessionPlan};
use lathe_protocol::{EndingRule, LimitChanges, Mode, PatchRule, Persona, SessionOptions};
use lathe_views::ModeSource;

use crate::endpoints::resumed_source;
use crate::given::GivenOptions;
use crate::model::{CassetteWish, review_rule, source};
use crate::settle::Settled;
use crate::wire::ConfigText;

/// Wish of a surface for a session. The settings supply the rest.
#[derive(Debug, Clone)]
pub struct Wish {
    /// The folder to work in.
    pub folder: PathBuf,
    /// The options that were given.
    pub given: GivenOptions,
    /// A configuration file that a client of the server named.
    pub config_file: Option<ConfigText>,
    pub cassette: Option<CassetteWish>,
    /// File to write a cassette to.
    pub record: Option<PathBuf>,
    /// Files that are written for the user while the session works.
    pub outputs: Vec<PathBuf>,
    /// A conversation, or one task that is driven to its end.
    pub conversation: bool,
    pub attended: Attended,
    /// The commit that a patch is made against, instead of the tree at the start.
    pub base_commit: Option<String>,
    /// True if the session has a patch because a file for it was named.
    pub wants_patch: bool,
    /// True if the session gets a model's address or key that the configuration does not give it.
    pub own_model: bool,
    /// The rules that edits are judged by; the settings decide if left out, and nothing is judged if they are empty.
    pub review: Option<ReviewRules>,
    /// Persona of the agent.
    pub persona: Option<Persona>,
}

/// Rules for reviews of edits. The settings say what reviews may take.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReviewRules {
    pub rules: String,
    pub gate: bool,
}

impl Wish {
    /// A wish without options: one task in a folder, without a user to ask.
    pub fn task(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            given: GivenOptions::default(),
            config_file: None,
            cassette: None,
            record: None,
            outputs: Vec::new(),
            conversation: false,
            attended: Attended::Nobody,
            base_commit: None,
            wants_patch: false,
            own_model: false,
            review: None,
            persona: None,
        }
    }
}

impl Settled {
    /// The mode of a new session. Without walls nothing may change unless the user asked for it. The flag of a patch
    /// asks for it; a file that sets the same option does not.
    pub fn mode(&self, wish: &Wish) -> (ModeWish, ModeSource) {
        let orders_patch =
            wish.attended == Attended::Nobody && wish.given.get("run.must_patch") == Some(true);
        match self.config.settings.run.mode {
            Some(mode) => (ModeWish::Given(mode), ModeSource::Settings),
            None if orders_patch => (ModeWish::Given(Mode::FullAuto), ModeSource::MustPatch),
            None if wish.conversation || wish.attended != Attended::Nobody => {
                (ModeWish::Given(Mode::Default), ModeSource::Settings)
            }
            None => (ModeWish::ByWalls, ModeSource::Settings),
        }
    }

    /// The plan of a new session.
    pub fn plan(&self, wish: &Wish) -> SessionPlan {
        let settings = &self.config.settings;
        // `run.must_patch` of a file is about runs; a conversation has a patch only if its client requests one.
        let must = match wish.conversation {
            true => wish.given.get("run.must_patch") == Some(true),
            false => settings.run.must_patch,
        };
        let patch = must || wish.wants_patch || wish.base_commit.is_some();
        SessionPlan {
            own_model: wish.own_model,
            folder: wish.folder.clone(),
            source: source(wish.cassette.as_ref(), settings),
            mode: self.mode(wish).0,
            sandbox: settings.run.sandbox,
            toolset: self.toolset(),
            limits: self.limits(),
            ending: if wish.conversation { EndingRule::EndTurn } else { EndingRule::Remind },
            patch: patch.then(|| PatchRule { must, base: wish.base_commit.clone() }),
            tools: self.tool_choice(),
            record: wish.record.clone(),
            attended: wish.attended,
            extras: self.extras_of(wish),
        }
    }

    /// The plan by which a session is resumed.
    pub fn overrides(&self, wish: &Wish, before: &SessionOptions, mode: Option<Mode>) -> Overrides {
        let settings = &self.config.settings;
        let given = RunSection::limit_changes(|key| wish.given.value(key).cloned());
        // Options come first, then the caps of the session, then those of the settings.
        let budget = given.budget.or(before.limits.budget.clone()).or(self.limits().budget);
        Overrides {
            own_model: wish.own_model,
            source: resumed_source(&wish.given, wish.cassette.as_ref(), settings, &before.model),
            mode,
            sandbox: wish.given.get("run.sandbox"),
            limits: LimitChanges { budget, ..given },
            record: wish.record.clone(),
            attended: wish.attended,
            extras: self.extras_of(wish),
        }
    }

    /// Additions of the settings and the wish to a session.
    fn extras_of(&self, wish: &Wish) -> Extras {
        let mut extras = self.extras_with_outputs(wish.outputs.iter().map(PathBuf::as_path));
        // A recorded model answers every question itself.
        if wish.cassette.is_some() {
            (extras.lakeview.source, extras.review.source) = (None, None);
        }
        if let Some(wished) = &wish.review {
            let rule = review_rule(&self.config.settings, wished.rules.clone(), wished.gate);
            extras.review.rule = (!wished.rules.is_empty()).then_some(rule);
        }
        extras.persona.clone_from(&wish.persona);
        extras
    }
}

/// The mode of a resumed session.
pub struct ResumedMode {
    pub mode: Mode,
    /// The mode the session worked in, if it is resumed with less.
    pub lowered_from: Option<Mode>,
}

/// The mode of a resumed session. A journal alone does not make it work without questions: what was allowed then needs the
/// flag, or the configuration, again.
pub fn resumed_mode(recorded: Mode, configured: Option<Mode>, flag: Option<Mode>) -> ResumedMode {
    if let Some(mode) = flag {
        return ResumedMode { mode, lowered_from: None };
    }
    let mode = recorded.min(configured.unwrap_or(Mode::Default));
    ResumedMode { mode, lowered_from: (mode != recorded).then_some(recorded) }
}
