//! Flags for the settings, made from the rows of `config`: their names, their help and the parsers of their values.

use std::marker::PhantomData;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser, ValueParser};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use lathe_plan::{FlagRow, GivenOptions, OptionForm, OptionRow, options};
use serde_json::{Value, json};

/// A command with flags for settings.
pub(crate) trait OptionCommand {
    /// The name of the command in the rows.
    const COMMAND: &'static str;
}

macro_rules! commands {
    ($($name:ident = $command:literal),* $(,)?) => {
        $(pub(crate) struct $name;

        impl OptionCommand for $name {
            const COMMAND: &'static str = $command;
        })*
    };
}

commands! {
    OfRun = "run",
    OfInteractive = "interactive",
    OfResume = "resume",
    OfServe = "serve",
    OfDoctor = "doctor",
    OfTools = "tools",
    OfShowConfig = "show-config",
}

/// The flags for settings that a command has, with the values that the user gave.
pub(crate) struct OptionArgs<Of>(pub(crate) GivenOptions, PhantomData<Of>);

impl<Of: OptionCommand> OptionArgs<Of> {
    fn rows() -> impl Iterator<Item = (&'static OptionRow, &'static FlagRow)> {
        let flagged = options().iter().filter_map(|row| Some((row, row.flag.as_ref()?)));
        flagged.filter(|(_, flag)| flag.is_on(Of::COMMAND))
    }
}

impl<Of: OptionCommand> Args for OptionArgs<Of> {
    fn augment_args(command: Command) -> Command {
        Self::rows().fold(command, |command, (row, flag)| command.arg(arg(row, flag)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<Of: OptionCommand> FromArgMatches for OptionArgs<Of> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = Self::rows().filter(|(row, _)| {
            matches.value_source(&row.key).is_some_and(|source| source == ValueSource::CommandLine)
        });
        let flags = given.filter_map(|(row, _)| Some(row.from_flag(value(row, matches)?)));
        Ok(Self(flags.collect(), PhantomData))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn value(row: &OptionRow, matches: &ArgMatches) -> Option<Value> {
    match row.form() {
        OptionForm::Switch => matches.get_one::<bool>(&row.key).map(|given| json!(given)),
        OptionForm::List => Some(matches.get_many::<Value>(&row.key)?.cloned().collect()),
        OptionForm::Text | OptionForm::Words(_) | OptionForm::Number => {
            matches.get_one::<Value>(&row.key).cloned()
        }
    }
}

fn arg(row: &'static OptionRow, flag: &'static FlagRow) -> Arg {
    let arg = Arg::new(row.key.as_str()).long(flag.long.as_str()).help(flag.help.as_str());
    let arg = match flag.short {
        Some(short) => arg.short(short),
        None => arg,
    };
    let named = |arg: Arg| match &flag.value_name {
        Some(name) => arg.value_name(name.as_str()),
        None => arg,
    };
    match row.form() {
        OptionForm::Switch => arg.action(ArgAction::SetTrue),
        OptionForm::Text => named(arg).value_parser(read(row)),
        OptionForm::Number => named(arg).value_parser(read(row)).allow_hyphen_values(true),
        OptionForm::List => named(arg).value_parser(read(row)).value_delimiter(',').action(ArgAction::Append),
        OptionForm::Words(words) => {
            let words = words.into_iter().map(|(word, help)| match help.is_empty() {
                true => PossibleValue::new(word),
                false => PossibleValue::new(word).help(help.trim_end_matches('.').to_owned()),
            });
            let parser = PossibleValuesParser::new(words.collect::<Vec<_>>());
            named(arg).value_parser(parser.map(Value::from))
        }
    }
}

fn read(row: &'static OptionRow) -> ValueParser {
    ValueParser::from(|text: &str| row.read(text))
}
