//! `cd` into the workspace and `xargs` in front of a command of the agent are decided as their parts where the gate
//! knows its folder (issue 16).

use lathe_policy::{Gate, OnDisk, OwnCommand, Rulebook};
use lathe_protocol::{Actor, Mode, ToolKind, Verdict};

fn gate() -> Gate {
    Gate {
        home: "/srv/lathe".into(),
        root: "/srv/repo".into(),
        user_home: Some("/home/me".into()),
        here: Some("/srv/repo".into()),
        outputs: None,
        headless: false,
        disk: OnDisk::default(),
        switched: lathe_policy::ShellSwitches::default(),
        walls: lathe_policy::Walls::None,
    }
}

fn rules() -> Rulebook {
    let own = |name: &str, kind| OwnCommand {
        name: name.to_owned(),
        tool: name.to_owned(),
        also: Vec::new(),
        kind,
    };
    Rulebook::builtin().with_own_commands([
        own("view", ToolKind::Read),
        own("search", ToolKind::Search),
        own("write", ToolKind::Edit),
    ])
}

fn said(line: &str, mode: Mode) -> (Verdict, String) {
    let decided = gate().decide_line(&rules(), Actor::Model, mode, line).decision;
    (decided.verdict, decided.rule)
}

#[test]
fn lines_that_go_to_a_folder_of_the_workspace_are_decided_as_their_parts() {
    for line in [
        "cd web",
        "cd web && npm test",
        "cd web && ls",
        "cd ./web/src; ls",
        "cd -- web && cat package.json",
        "cd /srv/repo/web && npm test",
        "cd /srv/repo && git status",
        "cd . && git log --oneline",
        "(cd web && ls) | head",
        "cd web && search -l needle | xargs view",
        "cd web || ls",
    ] {
        assert_eq!(said(line, Mode::Default).0, Verdict::Allow, "{line}: {:?}", said(line, Mode::Default));
    }
    for line in ["cd web", "cd web && ls", "cd /srv/repo && git status"] {
        assert_eq!(said(line, Mode::Plan).0, Verdict::Allow, "{line}: {:?}", said(line, Mode::Plan));
    }
}

#[test]
fn whatever_else_a_line_does_is_asked_about_as_before() {
    for line in [
        "cd",
        "cd -",
        "cd ~",
        "cd ~/x",
        "cd ..",
        "cd /tmp",
        "cd /srv/repo2",
        "cd web/../..",
        "cd $x",
        "cd \"$(pwd)\"",
        "cd w*",
        "cd -P web -- x",
        "cd web extra",
        "X=1 cd web",
        "cd web && rm a",
        "cd web && touch a",
        "cd web && cat ../../x",
        "cd web && git status",
        "cd web; g=git; $g status",
        "cd web && cd ../.. && ls",
        "cd web > out",
        "pushd web",
        "cd web && xargs rm < list",
        "cd web && python3 x.py",
    ] {
        for mode in [Mode::Default, Mode::Plan] {
            assert_ne!(said(line, mode).0, Verdict::Allow, "{mode:?} {line}: {:?}", said(line, mode));
        }
    }
    // Judged for no folder, the floors stand.
    let nowhere = Gate { here: None, ..gate() };
    for (line, rule) in [("cd web", "R4.state"), ("search x | xargs view", "R5.wrapper")] {
        let decided = nowhere.decide_line(&rules(), Actor::Model, Mode::Default, line).decision;
        assert_eq!((decided.verdict, decided.rule.as_str()), (Verdict::Ask, rule), "{line}");
    }
}

#[test]
fn xargs_in_front_of_a_command_of_the_agent_is_decided_when_that_runs() {
    for line in [
        "search -l needle | xargs view",
        "search -l needle | xargs -r view",
        "search -l needle | xargs -n 1 view",
        "find . -name '*.rs' -print0 | xargs -0 view",
        "search -l x | xargs -I {} view {}",
    ] {
        for mode in [Mode::Default, Mode::Plan] {
            assert_eq!(said(line, mode).0, Verdict::Allow, "{mode:?} {line}: {:?}", said(line, mode));
        }
    }
    for line in [
        "search -l needle | xargs rm",
        "search -l needle | xargs -a list view",
        "search -l needle | xargs --arg-file=list view",
        "search -l needle | xargs -o view",
        "search -l needle | xargs $x view",
        "search -l needle | xargs sh -c 'view'",
        "search -l needle | xargs env view",
        "search -l needle | xargs",
        "search -l needle | xargs -I view rm view",
    ] {
        assert_ne!(said(line, Mode::Plan).0, Verdict::Allow, "{line}: {:?}", said(line, Mode::Plan));
        assert_ne!(said(line, Mode::Default).0, Verdict::Allow, "{line}: {:?}", said(line, Mode::Default));
    }
}
