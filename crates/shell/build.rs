//! Compiles `ax` statically, so that the library can embed it.
//!
//! Cargo cannot embed one crate's binary in another on stable, but it tells build scripts which compiler
//! it uses. `crates/ax` is an ordinary member as well, for lints and tests.

use std::env;
use std::ffi::OsString;
use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::path::PathBuf;
use std::process::Command;

fn main() -> io::Result<()> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=../ax/src");
    let var = |name: &str| env::var_os(name).ok_or_else(|| io::Error::other(format!("cargo sets no {name}")));
    let source = PathBuf::from(var("CARGO_MANIFEST_DIR")?).join("../ax/src/main.rs");
    let binary = PathBuf::from(var("OUT_DIR")?).join("ax");
    let (target, host) = (var("TARGET")?, var("HOST")?);

    let mut rustc = Command::new(var("RUSTC")?);
    rustc.args(["--crate-name", "ax", "--edition", "2024", "-C", "panic=abort", "-C", "opt-level=s"]);
    rustc.args(["-C", "strip=symbols"]).arg("-o").arg(&binary).arg(&source);
    // Static means 1.35 times quicker to start, and no need for a matching libc at run time.
    if var("CARGO_CFG_TARGET_OS")? == "linux" {
        rustc.args(["-C", "target-feature=+crt-static"]);
    }
    // Linking with LTO takes two seconds more.
    if var("PROFILE")? == "release" {
        rustc.args(["-C", "lto=fat", "-C", "codegen-units=1"]);
    }
    if target != host {
        rustc.arg("--target").arg(&target);
    }
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        let mut option = OsString::from("linker=");
        option.push(linker);
        rustc.arg("-C").arg(option);
    }
    let status = rustc.status()?;
    if !status.success() {
        return Err(io::Error::other(format!("compiling ax: {status}")));
    }
    let mut hash = DefaultHasher::new();
    hash.write(&std::fs::read(&binary)?);
    println!("cargo:rustc-env=AX_HASH={:016x}", hash.finish());
    Ok(())
}
