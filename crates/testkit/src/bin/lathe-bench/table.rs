//! The table that is printed at the end.

use std::time::Duration;

use super::samples::Samples;

const HEAD: [&str; 8] = ["what", "p50", "p95", "beside", "p50", "ratio", "goal", ""];

#[derive(Debug, Default)]
pub struct BenchTable {
    rows: Vec<[String; 8]>,
    notes: Vec<String>,
    /// The measured value of each row that has one: seconds for a time, a count otherwise.
    values: Vec<BenchValue>,
}

/// The value of one row, for a comparison of two programs.
#[derive(Debug, Clone)]
pub struct BenchValue {
    pub what: String,
    pub unit: Unit,
    pub amount: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Seconds,
    Count,
}

/// The goal of a time.
pub enum Goal {
    /// At most this many times the reference.
    Ratio(f64),
    /// At most this long.
    Time(Duration),
    /// At most the reference, which was expected to take about this long.
    Beside(Duration),
}

impl BenchTable {
    /// A time and its reference.
    pub fn time(&mut self, what: &str, samples: &Samples, beside: (&str, Duration), goal: &Goal) {
        let median = samples.median();
        self.values.push(BenchValue {
            what: what.to_owned(),
            unit: Unit::Seconds,
            amount: median.as_secs_f64(),
        });
        let ratio = median.as_secs_f64() / beside.1.as_secs_f64();
        let (goal, met) = match goal {
            Goal::Ratio(limit) => (format!("ratio {limit}"), Some(ratio <= *limit)),
            Goal::Time(limit) => (ms(*limit), Some(median <= *limit)),
            Goal::Beside(about) => (format!("ratio 1, about {}", ms(*about)), Some(ratio <= 1.0)),
        };
        self.rows.push([
            what.to_owned(),
            ms(median),
            ms(samples.percentile(95)),
            beside.0.to_owned(),
            ms(beside.1),
            format!("{ratio:.2}"),
            goal,
            verdict(met),
        ]);
    }

    /// A size or count; `beside` may be empty.
    pub fn amount(
        &mut self,
        what: &str,
        amount: String,
        beside: (&str, String),
        goal: String,
        met: Option<bool>,
    ) {
        self.rows.push([
            what.to_owned(),
            amount,
            String::new(),
            beside.0.to_owned(),
            beside.1,
            String::new(),
            goal,
            verdict(met),
        ]);
    }

    /// A count that only a comparison shows.
    pub fn count(&mut self, what: &str, amount: u64) {
        self.values.push(BenchValue { what: what.to_owned(), unit: Unit::Count, amount: amount as f64 });
    }

    /// Returns what was measured so far.
    pub fn values(&self) -> &[BenchValue] {
        &self.values
    }

    /// A sentence under the table.
    pub fn note(&mut self, text: String) {
        self.notes.push(text);
    }

    pub fn print(&self) {
        let head = HEAD.map(str::to_owned);
        let mut widths = [0; HEAD.len()];
        for row in std::iter::once(&head).chain(&self.rows) {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let rule = widths.map(|width| "-".repeat(width));
        for row in [&head, &rule].into_iter().chain(&self.rows) {
            let cells: Vec<String> = row
                .iter()
                .zip(widths)
                .enumerate()
                .map(|(column, (cell, width))| match column {
                    1 | 2 | 4 | 5 => format!("{cell:>width$}"),
                    _ => format!("{cell:width$}"),
                })
                .collect();
            println!("{}", cells.join("  ").trim_end());
        }
        for note in &self.notes {
            println!("- {note}");
        }
    }
}

fn verdict(met: Option<bool>) -> String {
    match met {
        Some(true) => "met",
        Some(false) => "NOT met",
        None => "",
    }
    .to_owned()
}

pub fn ms(duration: Duration) -> String {
    format!("{:.2} ms", duration.as_secs_f64() * 1000.0)
}

pub fn mb(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}
