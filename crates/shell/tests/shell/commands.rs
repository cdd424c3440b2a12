//! Agent commands among others: words, streams and exit codes.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::harness::{all, eventually, text};
use crate::host::{commands, shell_with_commands};

#[tokio::test]
async fn words_arrive_as_bash_made_them() {
    let mut sh = commands().await;
    for (line, expected) in [
        ("args", "<args>\n"),
        ("args a 'b c' \"\" '' --x=1 -- '*'", "<args> <a> <b c> <> <> <--x=1> <--> <*>\n"),
        ("v='x  y'; args $v \"$v\" \"$(echo in)\" $((1+2))", "<args> <x> <y> <x  y> <in> <3>\n"),
        ("args $'two\\nlines\\t'", "<args> <two\nlines\t>\n"),
        ("exec -a other args 1", "<args> <1>\n"),
        ("command args 1", "<args> <1>\n"),
        ("env -i PATH=\"$PATH\" args 1", "<args> <1>\n"),
        ("env -i \"${PATH%%:*}/args\" 1", "<args> <1>\n"),
        ("cd \"${PATH%%:*}\"; ./args 1; ../bin/args 2; cd -", "<args> <1>\n<args> <2>\n"),
    ] {
        let end = sh.run(line).await;
        let (out, err) = text(&end);
        assert!(out.starts_with(expected) && err.is_empty(), "{line}: {out}{err}");
    }
    let end = sh.try_run(b"args \xff\xfe $'\\377'", Duration::from_secs(20)).await.unwrap();
    assert_eq!(end.stdout.read_all().unwrap(), b"<args> <\xff\xfe> <\xff>\n");
}

#[tokio::test]
async fn exit_codes_and_both_streams_are_those_of_the_host() {
    let mut sh = commands().await;
    assert_eq!(all(&sh.run("fail 7").await), (7, String::new(), "failed\n".into()));
    for code in [0, 1, 2, 124, 126, 127, 130, 255] {
        assert_eq!(sh.run(&format!("fail {code} 2>/dev/null")).await.exit.code(), code);
    }
    assert_eq!(
        sh.out("fail 3 2>&1 || echo \"or $?\"; args a && echo and").await,
        "failed\nor 3\n<args> <a>\nand\n"
    );
    assert_eq!(
        sh.out("(set -o pipefail; fail 4 2>/dev/null | cat; echo ${PIPESTATUS[@]} $?)").await,
        "4 0 4\n"
    );
    let (code, out, err) = all(&sh.run("panics").await);
    assert_eq!((code, out.as_str()), (125, ""));
    assert!(err.starts_with("panics: "), "{err}");
    assert_eq!(sh.out("args on").await, "<args> <on>\n");
}

#[tokio::test]
async fn they_compose_like_any_program() {
    let mut sh = commands().await;
    for (line, expected) in [
        ("echo abc | upper", "ABC\n"),
        ("echo abc | upper | upper | cat", "ABC\n"),
        ("args b a | upper | tr AB XY", "<XRGS> <Y> <X>\n"),
        ("upper <<< text", "TEXT\n"),
        ("upper <<'E'\n$a `b` \\c \"d\" 'e'\nE", "$A `B` \\C \"D\" 'E'\n"),
        ("echo file > f; upper < f > g; cat g; upper < f >> g; wc -l < g", "FILE\n2\n"),
        ("x=$(args 1); echo \"[$x]\"", "[<args> <1>]\n"),
        (
            "(args sub); { args group; }; ! fail 1 2>/dev/null && echo not",
            "<args> <sub>\n<args> <group>\nnot\n",
        ),
        ("f() { args \"$@\"; }; f 1 '2 3'", "<args> <1> <2 3>\n"),
        ("for i in 1 2; do args $i; done", "<args> <1>\n<args> <2>\n"),
        ("bash -c 'args nested; bash -c \"args deeper\"'", "<args> <nested>\n<args> <deeper>\n"),
        ("sh -c 'args dash'", "<args> <dash>\n"),
        (
            "printf '%s\\n' 1 2 3 4 5 6 7 8 | xargs -P4 -n1 args | sort",
            "<args> <1>\n<args> <2>\n<args> <3>\n<args> <4>\n<args> <5>\n<args> <6>\n<args> <7>\n<args> <8>\n",
        ),
        ("mkdir d; touch d/a d/b; find d -type f -exec args {} + | wc -w", "3\n"),
        ("find d -type f -exec args {} \\; | sort", "<args> <d/a>\n<args> <d/b>\n"),
        ("args bg & wait; echo $?", "<args> <bg>\n0\n"),
        ("nohup args up 2>/dev/null | cat; setsid -w args own", "<args> <up>\n<args> <own>\n"),
        ("timeout 5 args in time; nice args low", "<args> <in> <time>\n<args> <low>\n"),
        ("cat <(args 1) <(args 2)", "<args> <1>\n<args> <2>\n"),
        ("{ args 1; } > >(upper); wait $!", "<ARGS> <1>\n"),
        ("args 1 2>&1 >/dev/null; args a > f; cat f", "<args> <a>\n"),
        ("while read -r l; do args \"$l\"; done < <(printf 'a\\nb\\n')", "<args> <a>\n<args> <b>\n"),
        (
            "printf '1\\n2\\n3\\n' > list; while read -r l; do args $l; where >/dev/null; done < list",
            "<args> <1>\n<args> <2>\n<args> <3>\n",
        ),
    ] {
        assert_eq!(all(&sh.run(line).await), (0, expected.into(), String::new()), "{line}");
    }
}

#[tokio::test]
async fn the_folder_is_that_of_the_caller() {
    let mut sh = commands().await;
    let root = sh.folder();
    let root = root.display();
    sh.run("mkdir -p d/e").await;
    for (line, expected) in [
        ("where", format!("{root}\n")),
        ("cd d; where", format!("{root}/d\n")),
        ("where; (cd e; where); where", format!("{root}/d\n{root}/d/e\n{root}/d\n")),
        ("env -C e where", format!("{root}/d/e\n")),
        ("exit 3", String::new()),
        ("where", format!("{root}/d\n")),
    ] {
        assert_eq!(sh.out(line).await, expected, "{line}");
    }
    let (code, out, err) = all(&sh.run("mkdir gone; cd gone; rmdir ../gone; where").await);
    assert_eq!((code, out.as_str()), (125, ""));
    assert_eq!(err, "where: the current folder does not exist any more\n");
}

#[tokio::test]
async fn ten_megabytes_pass_unchanged() {
    let mut sh = commands().await;
    let line = "head -c 10000000 /dev/urandom > in; upper < in > file; cat in | upper | cat > pipe
        LC_ALL=C tr a-z A-Z < in | tee right | cmp - file && cmp right pipe && wc -c < file";
    assert_eq!(all(&sh.run(line).await), (0, "10000000\n".into(), String::new()));
    let end = sh.run(r"printf 'a\000\377\r\n\xc3\x28 no newline' | upper").await;
    assert_eq!(end.stdout.read_all().unwrap(), b"A\0\xff\r\n\xc3\x28 NO NEWLINE");
    assert_eq!(sh.out("head -c 120000 /dev/zero | tr '\\0' x > f; args \"$(<f)\" | wc -c").await, "120010\n");
}

#[tokio::test]
async fn input_is_only_taken_when_it_is_wanted() {
    let mut sh = commands().await;
    assert_eq!(sh.out("printf 'a\\nb\\n' | { args; cat; }").await, "<args>\na\nb\n");
    let line = "for i in 1 2 3; do echo $i; sleep 0.05; done | { take; cat; }";
    assert_eq!(sh.out(line).await, "1\n2\n3\n");
    let (code, out, err) = all(&sh.run("upper < /").await);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.starts_with("upper: standard input: Is a directory"), "{err}");
    assert_eq!(all(&sh.run("upper; upper </dev/null; upper <&-").await), (0, String::new(), String::new()));
}

#[tokio::test]
async fn a_reader_that_goes_ends_the_writer() {
    let mut sh = commands().await;
    assert_eq!(sh.out("flood | head -1").await, "flood\n");
    assert_eq!(sh.out("flood | head -1; echo ${PIPESTATUS[0]}").await, "flood\n141\n");
    assert_eq!(sh.run("set -o pipefail; flood | head -1").await.exit.code(), 141);
    let (code, out, err) = all(&sh.run("args > /dev/full").await);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.starts_with("args: write error: No space left"), "{err}");
}

#[tokio::test]
async fn a_caller_that_goes_is_noticed() {
    let (mut sh, seen) = shell_with_commands().await;
    assert_eq!(sh.run("timeout 0.2 slow").await.exit.code(), 124);
    eventually("the host was told", || seen.cancelled.load(Ordering::SeqCst) == 1).await;
    assert_eq!(sh.out("slow & p=$!; sleep 0.1; kill -INT $p; kill $p; wait $p; echo $?").await, "143\n");
    eventually("the host was told", || seen.cancelled.load(Ordering::SeqCst) == 2).await;
    let line = "env --default-signal=INT slow & sleep 0.2; kill -INT $!; wait $!; echo $?";
    assert_eq!(sh.out(line).await, "130\n");
    eventually("the host was told", || seen.cancelled.load(Ordering::SeqCst) == 3).await;
    assert_eq!(sh.out("bash -ic 'timeout -s INT 0.2 slow; echo $?' 2>/dev/null").await, "124\n");
    let end = sh.run_for("slow; args never", Duration::from_millis(300)).await;
    assert_eq!((end.exit.code(), text(&end).0.as_str()), (143, ""));
    eventually("the host was told", || seen.cancelled.load(Ordering::SeqCst) == 5).await;
    assert_eq!(sh.out("sleep 5 | upper & sleep 0.1; kill %1; wait; args on").await, "<args> <on>\n");
}

#[tokio::test]
async fn the_face_is_the_sessions_only_where_its_reader_is() {
    let mut sh = commands().await;
    let (session, elsewhere) = ("Session Nothing 022\n", "Elsewhere Nothing 022\n");
    for line in [
        "face",
        "(face)",
        "{ face; }",
        "for i in 1; do face; done",
        "f() { face; }; f",
        "bash -c face",
        "bash -c 'bash -c \"face; true\"'",
        "face >&2 2>&1",
        "env -i PATH=\"$PATH\" face",
        "face & wait",
        "setsid -w face",
        "cd \"${PATH%%:*}\"; ./face; cd - >/dev/null",
    ] {
        let (out, err) = text(&sh.run(line).await);
        assert_eq!(out + &err, session, "{line}");
    }
    for line in [
        "face | cat",
        "(face) | cat",
        "echo \"$(face)\"",
        "face > f; cat f",
        "cat <(face)",
        "{ face; } > >(cat); wait $!",
        "bash -c 'face | cat'",
        "mkfifo o1; cat o1 & face > o1; wait",
    ] {
        assert_eq!(sh.out(line).await, elsewhere, "{line}");
    }
    for (line, expected) in [
        ("echo | face", "Session Stream 022\n"),
        ("face <<< x", "Session Stream 022\n"),
        ("echo > g; face < g", "Session Stream 022\n"),
        ("face < /dev/null", session),
        ("face <&-", session),
        ("face < /dev/zero", "Session Stream 022\n"),
        ("umask 077; face", "Session Nothing 077\n"),
    ] {
        assert_eq!(sh.out(line).await, expected, "{line}");
    }
}
