//! The model of a session, from the settings or from a cassette.

use std::path::PathBuf;
use std::time::Duration;

use lathe_config::{ModelSection, OnOutage, Settings};
use lathe_host::{AddressFrom, LakeviewPlan, ModelRequest, ModelSource, ReviewPlan};
use lathe_model::{Outage, Params, Patience};
use lathe_protocol::{ReplayPace, ReplayStrictness, ReviewRule};

use crate::settle::Settled;

/// A cassette that answers instead of a model.
#[derive(Debug, Clone)]
pub struct CassetteWish {
    pub path: PathBuf,
    /// True if the run ends where it differs from the recording.
    pub strict: bool,
}

impl CassetteWish {
    pub(crate) fn source(&self) -> ModelSource {
        let strictness = if self.strict { ReplayStrictness::Strict } else { ReplayStrictness::Lenient };
        ModelSource::Replay { cassette: self.path.clone(), pace: ReplayPace::Instant, strictness }
    }
}

/// The model that is asked: the cassette's, or that of the settings.
pub(crate) fn source(cassette: Option<&CassetteWish>, settings: &Settings) -> ModelSource {
    match cassette {
        Some(cassette) => cassette.source(),
        None => ModelSource::Ask(request_of_settings(settings)),
    }
}

impl Settled {
    /// The request for the model of the settings.
    pub fn model_request(&self) -> ModelRequest {
        request_of_settings(&self.config.settings)
    }
}

/// The request for the model of these settings.
pub(crate) fn request_of_settings(settings: &Settings) -> ModelRequest {
    let key = settings.foreign.key_of(&settings.model);
    let address_from = match settings.foreign.has_address_of(&settings.model) {
        true => AddressFrom::Project,
        false => AddressFrom::Owner,
    };
    ModelRequest {
        provider: settings.provider_kind().map(str::to_owned),
        model: settings.model.name.clone(),
        base_url: settings.model.base_url.clone(),
        address_from,
        api_key: key.map(|key| key.expose().to_owned()),
        api_version: settings.model.api_version.clone(),
        outage: outage(settings.run.on_outage),
        ..request(&settings.model)
    }
}

pub(crate) fn outage(setting: Option<OnOutage>) -> Outage {
    match setting {
        Some(OnOutage::Park) => Outage::Park,
        Some(OnOutage::Fail) | None => Outage::Fail,
    }
}

/// The parameters and the patience that a section sets.
pub(crate) fn request(model: &ModelSection) -> ModelRequest {
    let params = Params {
        temperature: model.temperature,
        top_p: model.top_p,
        top_k: model.top_k,
        max_tokens: model.output_limit(),
        parallel_calls: model.parallel_tool_calls,
        candidate_count: model.candidate_count,
        stop_sequences: model.stop_sequences.clone().unwrap_or_default(),
        thinking_tokens: model.thinking_tokens,
        own_tools: model.provider_tools.unwrap_or(false),
        images: model.supports_images,
        ..Params::default()
    };
    let seconds = |set: Option<u32>, usual: Duration| set.map_or(usual, |s| Duration::from_secs(s.into()));
    let usual = Patience::default();
    let total = seconds(model.answer_seconds, usual.total);
    let patience = Patience {
        stall: seconds(model.stall_seconds, usual.stall),
        first_byte: usual.first_byte.min(total),
        total,
        longest_wait: seconds(model.longest_wait_seconds, usual.longest_wait),
        attempts: model.max_retries.map_or(usual.attempts, |retries| retries.saturating_add(1)),
        ..usual
    };
    let mut request = ModelRequest { params, patience, ..ModelRequest::default() };
    if model.supports_tool_calling == Some(false) {
        request.describe_tools();
    }
    request
}

/// The plan for summaries of steps.
pub(crate) fn lakeview(settings: &Settings) -> LakeviewPlan {
    let usual = LakeviewPlan::default();
    LakeviewPlan {
        source: aside(settings, settings.lakeview.model.as_deref()),
        max_tokens: settings.lakeview.max_tokens.unwrap_or(usual.max_tokens),
        each_step: settings.lakeview.enabled,
    }
}

/// A model that is asked outside of the conversation; none if it is that of the task.
fn aside(settings: &Settings, name: Option<&str>) -> Option<ModelSource> {
    let model = settings.model_beside(name?);
    Some(source(None, &Settings { model, ..settings.clone() }))
}

/// The plan for reviews of edits.
pub(crate) fn review(settings: &Settings) -> ReviewPlan {
    let section = &settings.review;
    let rule = review_rule(settings, section.rules.clone(), section.gate);
    ReviewPlan {
        rule: (section.enabled && !section.rules.trim().is_empty()).then_some(rule),
        source: aside(settings, section.model.as_deref()),
    }
}

/// A rule for reviews, within the limits of the settings.
pub(crate) fn review_rule(settings: &Settings, rules: String, gate: bool) -> ReviewRule {
    let section = &settings.review;
    ReviewRule {
        rules,
        gate,
        after_edits: true,
        max_reviews: section.max_reviews,
        max_tokens: section.max_tokens,
    }
}
