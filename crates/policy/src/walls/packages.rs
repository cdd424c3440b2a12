//! Programs that start another one which is installed with a project: `npx tsc`, `uv run pytest`, `bundle exec rake`.

use std::path::Path;

use crate::gate::Gate;
use crate::places::UNKNOWN;

/// Programs, and the subcommands after which the words of another program stand.
const RUNNERS: [(&str, &[&str]); 20] = [
    ("uv", &["run"]),
    ("poetry", &["run"]),
    ("pipenv", &["run"]),
    ("pdm", &["run"]),
    ("hatch", &["run"]),
    ("rye", &["run"]),
    ("pixi", &["run"]),
    ("conda", &["run"]),
    ("mamba", &["run"]),
    ("bundle", &["exec"]),
    ("npm", &["exec", "x"]),
    ("pnpm", &["exec"]),
    ("yarn", &["exec", "run"]),
    ("bun", &["run"]),
    ("mise", &["exec", "x"]),
    ("asdf", &["exec"]),
    ("rbenv", &["exec"]),
    ("pyenv", &["exec"]),
    ("opam", &["exec"]),
    ("stack", &["exec"]),
];

/// Programs that download the program they start, where it is missing.
const FETCHERS: [&str; 6] = ["npx", "pnpx", "bunx", "uvx", "npm", "pipx"];

/// Options of runners that take the next word.
const VALUED: [&str; 14] = [
    "-p",
    "--package",
    "--with",
    "--with-requirements",
    "--python",
    "--env-file",
    "--extra",
    "--group",
    "-n",
    "--name",
    "-e",
    "--environment",
    "--project",
    "--directory",
];

/// Tools that projects have among their own packages. Starting one is part of a build.
const TOOLS: [&str; 118] = [
    "tsc",
    "tsx",
    "ts-node",
    "tsup",
    "tsd",
    "vue-tsc",
    "svelte-check",
    "eslint",
    "prettier",
    "biome",
    "stylelint",
    "oxlint",
    "standard",
    "xo",
    "jest",
    "vitest",
    "mocha",
    "ava",
    "tap",
    "c8",
    "nyc",
    "karma",
    "jasmine",
    "playwright",
    "cypress",
    "vite",
    "webpack",
    "webpack-cli",
    "rollup",
    "esbuild",
    "parcel",
    "swc",
    "babel",
    "next",
    "nuxt",
    "nuxi",
    "astro",
    "ng",
    "nest",
    "remix",
    "storybook",
    "tailwindcss",
    "postcss",
    "sass",
    "nodemon",
    "rimraf",
    "concurrently",
    "husky",
    "lint-staged",
    "typedoc",
    "prisma",
    "drizzle-kit",
    "turbo",
    "nx",
    "ruff",
    "black",
    "mypy",
    "pytest",
    "isort",
    "flake8",
    "pyright",
    "pylint",
    "sequelize-cli",
    "knex",
    "typeorm",
    "mikro-orm",
    "ts-jest",
    "lerna",
    "gulp",
    "grunt",
    "cross-env",
    "npm-run-all",
    "run-s",
    "run-p",
    "wait-on",
    "mkdirp",
    "shx",
    "zx",
    "http-server",
    "serve",
    "json-server",
    "live-server",
    "webpack-dev-server",
    "ts-node-dev",
    "tsc-watch",
    "madge",
    "depcheck",
    "size-limit",
    "commitlint",
    "changeset",
    "markdownlint",
    "cspell",
    "jsdoc",
    "api-extractor",
    "microbundle",
    "tsdx",
    "unbuild",
    "ncc",
    "react-scripts",
    "vue-cli-service",
    "gatsby",
    "eleventy",
    "docusaurus",
    "vitepress",
    "graphql-codegen",
    "openapi-typescript",
    "swagger-cli",
    "electron",
    "electron-builder",
    "pm2",
    "marp",
    "slidev",
    "codespell",
    "bandit",
    "tox",
    "nox",
    "sphinx-build",
    "mkdocs",
];

/// The words of the program that a runner starts.
pub(super) fn started<'s, 'w>(name: &str, words: &'s [&'w str]) -> Option<&'s [&'w str]> {
    let after = match name {
        "npx" | "pnpx" | "bunx" | "uvx" => words,
        "pipx" => after_sub(words, &["run"])?,
        _ => {
            let (_, subs) = RUNNERS.iter().find(|(known, _)| *known == name)?;
            after_sub(words, subs)?
        }
    };
    let mut at = 0;
    while let Some(word) = after.get(at).filter(|word| word.starts_with('-') && **word != "--") {
        at += 1 + usize::from(VALUED.contains(word));
    }
    at += usize::from(after.get(at) == Some(&"--"));
    after.get(at..).filter(|rest| !rest.is_empty())
}

fn after_sub<'s, 'w>(words: &'s [&'w str], subs: &[&str]) -> Option<&'s [&'w str]> {
    let at = words.iter().position(|word| !word.starts_with('-'))?;
    words.get(at).filter(|word| subs.contains(word))?;
    words.get(at + 1..)
}

/// Tells whether a runner starts something that is installed with the project, or a tool that a project has. A
/// package with a version, or one that is asked for by an option, is downloaded.
pub(super) fn runs_installed(gate: &Gate, from: &[String], name: &str, words: &[&str]) -> bool {
    if !FETCHERS.contains(&name) {
        return false;
    }
    let Some([tool, ..]) = started(name, words) else { return false };
    let own = words.iter().take_while(|word| *word != tool);
    let asks = |word: &str| {
        matches!(word, "-y" | "--yes" | "-p" | "-c" | "--call" | "--from" | "--spec")
            || word.starts_with("--package")
    };
    if own.clone().any(|word| asks(word)) || tool.contains(UNKNOWN) {
        return false;
    }
    if own.into_iter().any(|word| matches!(*word, "--no" | "--no-install" | "--offline")) {
        return true;
    }
    let (scope, bare) = tool
        .strip_prefix('@')
        .and_then(|rest| rest.split_once('/'))
        .map_or((false, *tool), |(_, bare)| (true, bare));
    if bare.contains('@') || bare.contains('/') {
        return false;
    }
    let place = |folder: &String| format!("{folder}/node_modules/.bin/{bare}");
    let is_there = || {
        let disk = gate.disk.get()?;
        let folders = from.iter().cloned().chain([gate.root.display().to_string()]);
        Some(folders.into_iter().any(|folder| disk.exists(Path::new(&place(&folder)))))
    };
    (!scope && TOOLS.contains(&bare))
        || matches!(*tool, "@biomejs/biome" | "@angular/cli")
        || is_there() == Some(true)
}

/// Names of parts of a script or a target that send something away.
const SENDS: [&str; 4] = ["publish", "deploy", "upload", "push"];

/// Tells whether a program is told to run a script or a target that publishes something, by its name.
pub(super) fn publishes(name: &str, words: &[&str]) -> bool {
    let given = crate::guard::operands(words);
    let scripts = match name {
        "npm" | "pnpm" | "yarn" | "bun" => match given.as_slice() {
            ["run" | "run-script", script, ..] => vec![*script],
            [script, ..] if name != "npm" => vec![*script],
            _ => Vec::new(),
        },
        "make" | "gmake" | "just" | "task" | "rake" | "invoke" | "inv" | "fab" | "ant" | "mage" => {
            given.into_iter().filter(|word| !word.contains('=')).collect()
        }
        "mvn" | "mvnw" | "mvnd" | "gradle" | "gradlew" | "sbt" | "sbtn" | "lein" | "mill" => given,
        _ => return false,
    };
    let builder =
        matches!(name, "mvn" | "mvnw" | "mvnd" | "gradle" | "gradlew" | "sbt" | "sbtn" | "lein" | "mill");
    scripts.iter().any(|script| {
        let mut parts = script.split([':', '-', '_', '.', '/']);
        // Of builders, `publishToSonatype` too, and their own ways of fetching everything.
        let sends = |part: &str| {
            SENDS.contains(&part)
                || (builder
                    && part != "publishToMavenLocal"
                    && SENDS.iter().any(|sends| part.starts_with(sends)))
                || (builder && part == "release")
        };
        let fetches = builder
            && matches!(
                *script,
                "deps" | "update" | "dependency:get" | "dependency:go-offline" | "dependency:resolve"
            );
        fetches || parts.any(sends)
    })
}

/// Tells whether a command of `go` downloads modules.
pub(super) fn fetched_by_go(words: &[&str]) -> bool {
    let given = crate::guard::operands(words);
    let versioned = || given.iter().skip(1).take(1).any(|word| word.contains('@'));
    match given.as_slice() {
        ["get", ..] | ["work", "sync", ..] | ["mod", "download" | "tidy" | "vendor" | "get", ..] => true,
        ["install", ..] => given.iter().any(|word| word.contains('@')),
        ["run" | "build" | "test" | "vet", ..] => versioned(),
        [first, ..] => first.contains(UNKNOWN),
        [] => false,
    }
}

/// `npm init` with nothing after it, which writes a file and asks no registry.
pub(super) fn begins_package(name: &str, words: &[&str]) -> bool {
    name == "npm" && matches!(crate::guard::operands(words).as_slice(), ["init" | "innit"])
}
