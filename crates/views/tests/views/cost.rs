use lathe_protocol::{
    CallFinished, Event, Forked, OptionsChanged, Reviewed, Rewound, SessionId, StepNo, StepSummarised,
};
use lathe_views::{By, CostReport, Money, Prices, SessionCost, SessionView};

use crate::make::{Journal, options, result, text, usage};

fn answers(journal: &mut Journal, count: usize) {
    for _ in 0..count {
        journal.asked().answered(vec![text("x")], usage(1_000_000, 0, 0));
    }
}

fn report(journals: &[&Vec<Event>]) -> CostReport {
    let mut report = CostReport::new(Prices::built_in());
    for (at, events) in journals.iter().enumerate() {
        let mut cost = SessionCost::of(events.iter()).unwrap();
        cost.session = SessionId::new(format!("s{at}"));
        report.add(cost);
    }
    report
}

#[test]
fn sessions_are_summed_by_day_model_and_folder_and_what_has_no_price_is_told_apart() {
    let mut one = Journal::new("claude-sonnet-4-5");
    one.task("t");
    answers(&mut one, 2);
    one.pass(24 * 3_600_000);
    answers(&mut one, 1);
    let mut other = Journal::new("house-model");
    other.task("t");
    answers(&mut other, 1);
    let report = report(&[&one.events, &other.events]);

    let days = report.rows(By::Day);
    let shown: Vec<_> =
        days.iter().map(|row| (row.key.as_str(), row.sessions, row.answers, row.cost)).collect();
    assert_eq!(shown, [("2026-11-15", 2, 3, Money(6_000_000)), ("2026-11-16", 1, 1, Money(3_000_000))]);
    assert_eq!(days[0].usage.input_tokens, 3_000_000);
    assert_eq!(days[0].unpriced.input_tokens, 1_000_000);
    assert_eq!(days[0].unpriced_models.iter().collect::<Vec<_>>(), ["house-model"]);

    let models = report.rows(By::Model);
    let shown: Vec<_> = models.iter().map(|row| (row.key.as_str(), row.cost)).collect();
    assert_eq!(shown, [("claude-sonnet-4-5", Money(9_000_000)), ("house-model", Money::ZERO)]);

    let repos = report.rows(By::Repo);
    assert_eq!((repos.len(), repos[0].sessions, repos[0].cost), (1, 2, Money(9_000_000)));
    let total = report.total();
    assert_eq!((total.sessions, total.answers, total.cost), (2, 4, Money(9_000_000)));
}

#[test]
fn summaries_and_reviews_are_counted_and_told_apart() {
    let mut journal = Journal::new("claude-sonnet-4-5");
    journal.task("t");
    answers(&mut journal, 1);
    let review = Reviewed {
        tokens: 2_000_000,
        asked: 2,
        model: Some("claude-sonnet-4-5".into()),
        usage: Some(usage(2_000_000, 0, 0)),
        ..Reviewed::default()
    };
    // As an older Lathe wrote it: without saying whose tokens these were.
    let old = Reviewed { tokens: 7, asked: 1, ..Reviewed::default() };
    for review in [review, old] {
        journal.add(Some("c1"), CallFinished { review: Some(review), ..result("edit", "done") });
    }
    let summary = StepSummarised {
        task: "reads".into(),
        details: "Reads.".into(),
        tags: Vec::new(),
        model: "house-model".into(),
        usage: usage(3_000, 0, 0),
        command: None,
    };
    journal.add(None, summary);
    let total = report(&[&journal.events]).total();
    assert_eq!((total.answers, total.usage.input_tokens), (5, 3_003_007));
    assert_eq!(
        (total.cost, total.review.cost, total.lakeview.cost),
        (Money(9_000_000), Money(6_000_000), Money::ZERO)
    );
    assert_eq!((total.review.answers, total.review.usage.input_tokens), (3, 2_000_007));
    assert_eq!((total.lakeview.answers, total.lakeview.usage.input_tokens), (1, 3_000));
    assert_eq!(total.unpriced_models.iter().collect::<Vec<_>>(), ["house-model", "unknown"]);
}

#[test]
fn a_summary_that_is_made_later_is_not_the_time_of_the_run() {
    let mut journal = Journal::new("claude-sonnet-4-5");
    journal.task("t");
    answers(&mut journal, 1);
    let took = |journal: &Journal| SessionView::of(&journal.events).runs[0].duration_ms();
    let before = took(&journal);
    let summary = StepSummarised {
        task: "reads".into(),
        details: "Reads.".into(),
        tags: Vec::new(),
        model: "house-model".into(),
        usage: usage(1, 0, 0),
        command: None,
    };
    journal.add(None, summary);
    assert_eq!(took(&journal), before);
}

#[test]
fn a_fork_does_not_pay_again_for_what_it_took_over() {
    let forked = Forked { from: SessionId::new("origin"), at: StepNo(2), command: None };
    let mut fork = Journal::opened(options("claude-sonnet-4-5"), Some(forked));
    fork.task("t");
    answers(&mut fork, 3);
    assert_eq!(report(&[&fork.events]).total().cost, Money(3_000_000));
}

#[test]
fn what_was_rewound_was_paid_for() {
    let mut journal = Journal::new("claude-sonnet-4-5");
    journal.task("t");
    answers(&mut journal, 2);
    journal.add(None, Rewound { to: StepNo(1) });
    answers(&mut journal, 1);
    assert_eq!(report(&[&journal.events]).total().answers, 3);
}

#[test]
fn a_recording_costs_nothing_and_is_no_unknown_price() {
    let mut options = options("recorded");
    options.model.provider = "cassette".into();
    let mut journal = Journal::opened(options, None);
    journal.model = "claude-sonnet-4-5".into();
    journal.task("t");
    answers(&mut journal, 1);
    let total = report(&[&journal.events]).total();
    assert_eq!(
        (total.cost, total.recorded.input_tokens, total.unpriced.input_tokens),
        (Money::ZERO, 1_000_000, 0)
    );
}

#[test]
fn the_price_of_the_model_asked_for_is_taken_where_the_answers_name_is_unknown() {
    let mut journal = Journal::new("m");
    journal.model = "deployment-7".into();
    journal.task("t").add(None, OptionsChanged { options: options("claude-sonnet-4-5") });
    answers(&mut journal, 1);
    let total = report(&[&journal.events]).total();
    assert_eq!((total.cost, total.unpriced.input_tokens), (Money(3_000_000), 0));
}

#[test]
fn days_may_be_those_of_another_zone_and_a_summary_survives_writing_and_reading() {
    let mut journal = Journal::new("m");
    journal.task("t");
    answers(&mut journal, 1);
    let cost = SessionCost::by_day(&journal.events, &|_| "today".to_owned()).unwrap();
    assert_eq!(cost.paid[0].day, "today");
    let text = serde_json::to_string(&cost).unwrap();
    assert_eq!(serde_json::from_str::<SessionCost>(&text).unwrap(), cost);
}

#[test]
fn a_journal_without_a_beginning_has_no_cost() {
    assert_eq!(SessionCost::of([]), None);
}

#[test]
fn the_cache_is_metered_and_every_break_has_its_cause() {
    use lathe_protocol::OptionsChanged;
    use lathe_views::{CacheCause, CacheMeter};
    let mut journal = Journal::new("m");
    let answer = |journal: &mut Journal, input: u64, cached: u64| {
        journal.asked().answered(vec![text("x")], usage(input, 1, cached));
    };
    journal.task("t").epoch("s", &[]);
    answer(&mut journal, 2000, 0);
    answer(&mut journal, 3000, 2000);
    journal.pass(600_000);
    answer(&mut journal, 4000, 0);
    answer(&mut journal, 5000, 100);
    journal.add(None, OptionsChanged { options: options("other") });
    answer(&mut journal, 6000, 0);
    answer(&mut journal, 7000, 6000);
    let meter = CacheMeter::of(&journal.events);
    let causes: Vec<CacheCause> = meter.breaks.iter().map(|broken| broken.cause).collect();
    assert_eq!(causes, [CacheCause::Time { seconds: 600 }, CacheCause::Provider, CacheCause::OtherModel]);
    assert_eq!(meter.percent(), Some(8100 * 100 / 27_000));
    // Who never tells of a cache breaks none.
    let mut silent = Journal::new("m");
    silent.task("t").epoch("s", &[]);
    answer(&mut silent, 5000, 0);
    answer(&mut silent, 6000, 0);
    let meter = CacheMeter::of(&silent.events);
    assert_eq!((meter.percent(), meter.breaks.len()), (None, 0));
}
