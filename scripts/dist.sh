#!/usr/bin/env bash
# Builds what is released, into target/dist:
#   libdq.so, dqctl        the module and the command line, stripped; glibc.txt says which C library they need
#   dq-VERSION-linux-ARCH.tar.gz
#   redis-module-dq_VERSION-1_ARCH.deb
#   dq-VERSION-linux-ARCH.cdx.json    the crates in the binaries, as CycloneDX
#   SHA256SUMS
#   scripts/dist.sh [TRIPLE]      the target of the compiler, by default this machine's; packaging/README.md on others
# The same commit in the same directory gives the same bytes: all times are that of the commit (or SOURCE_DATE_EPOCH),
# and no path of the machine gets into the binaries.
set -euo pipefail
umask 022
export LC_ALL=C TZ=UTC
cd "$(dirname "$0")/.."
root=$(pwd -P)

die() {
    echo "dq: $*" >&2
    exit 1
}

host=$(rustc -vV | sed -n 's/^host: //p')
triple=${1:-$host}
case $triple in
x86_64-unknown-linux-gnu) arch=x86_64 debian=amd64 tools=x86_64-linux-gnu- ;;
aarch64-unknown-linux-gnu) arch=aarch64 debian=arm64 tools=aarch64-linux-gnu- ;;
*) die "releases are built for Linux with glibc on x86_64 and aarch64, not for $triple;" \
    "\`make build\` builds the module elsewhere" ;;
esac
if [ "$triple" = "$host" ]; then tools="" emulator=(); else
    # The other machine's dqctl prints its man pages and completions under this.
    emulator=("qemu-$arch" -L "/usr/$arch-linux-gnu")
fi
for tool in "${tools}strip" "${tools}objdump" python3 tar gzip sha256sum ${emulator[0]:+"${emulator[0]}"}; do
    command -v "$tool" >/dev/null || die "missing: $tool; packaging/README.md says what to install"
done

version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"$/\1/p' Cargo.toml)
[ -n "$version" ] || die "Cargo.toml names no version"
if [ -z "${SOURCE_DATE_EPOCH:-}" ]; then
    SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) ||
        die "not a git repository: set SOURCE_DATE_EPOCH to the time of the release"
    [ -z "$(git status --porcelain)" ] || echo "dq: the working tree is not that of the commit; do not publish this"
fi
export SOURCE_DATE_EPOCH

target=${CARGO_TARGET_DIR:-$root/target}
case $target in /*) ;; *) target=$root/$target ;; esac
dist=$target/dist
[ "$triple" = "$host" ] || dist=$target/dist-$arch
rm -rf "$dist"
mkdir -p "$dist"

# --- the binaries ---

# A directory of its own, since other flags would make `make build` compile everything again.
cargo=${CARGO_HOME:-$HOME/.cargo}
export RUSTFLAGS="--remap-path-prefix=$cargo/registry/src=/cargo --remap-path-prefix=$root=/dq"
export CFLAGS="-ffile-prefix-map=$cargo/registry/src=/cargo"
if [ "$triple" != "$host" ]; then
    name=${triple//-/_}
    export "CARGO_TARGET_${name^^}_LINKER=${tools}gcc" "CC_$name=${tools}gcc" "AR_$name=${tools}ar"
    export "BINDGEN_EXTRA_CLANG_ARGS_$name=-isystem /usr/$arch-linux-gnu/include"
fi
build=(--release --locked --target "$triple" --target-dir "$target/dist-build")
cargo build "${build[@]}" --package dq --package dqctl

built=$target/dist-build/$triple/release
"${tools}strip" --strip-unneeded -o "$dist/libdq.so" "$built/libdq.so"
"${tools}strip" -o "$dist/dqctl" "$built/dqctl"
chmod 755 "$dist/libdq.so" "$dist/dqctl" # Redis refuses a module without the permission to execute

# The newest symbol version of a library that a binary refers to: the library must be that new.
needs() { "${tools}objdump" -T "$2" | grep -oE "$1_[0-9.]+" | sort -uV | tail -n 1 | sed "s/$1_//"; }
for name in libdq.so dqctl; do
    echo "$name needs glibc $(needs GLIBC "$dist/$name") or newer"
done | tee "$dist/glibc.txt"

# --- what goes with them ---

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
name=dq-$version-linux-$arch
tree=$stage/$name
mkdir -p "$tree/man" "$tree/completions"
cp "$dist/libdq.so" "$dist/dqctl" README.md LICENSE CHANGELOG.md SECURITY.md "$tree"
cp -r docs examples contrib "$tree"
find "$tree" -name __pycache__ -prune -exec rm -r {} +

python3 packaging/licenses.py "$triple" >"$tree/THIRD-PARTY-LICENSES"
python3 packaging/sbom.py "$triple" >"$dist/$name.cdx.json"

# The example names the module of a build; here it is in the same folder.
example() {
    sed -e "s|^loadmodule .*|loadmodule $1|" \
        -e "s|^# A configuration .*|# A configuration for Redis 7.0+ or Valkey with dq. $2|" \
        redis.conf.example >"$3"
    grep -qxF "loadmodule $1" "$3" || die "redis.conf.example has no loadmodule line"
}
example ./libdq.so "From the directory of this file:" "$tree/redis.conf.example"
sed -i '/^# `make run` uses it/d' "$tree/redis.conf.example"

ctl() { "${emulator[@]}" "$dist/dqctl" "$@"; }
ctl man "$tree/man" || die "dqctl man failed"
ctl completions bash >"$tree/completions/dqctl.bash" || die "dqctl completions failed"
ctl completions zsh >"$tree/completions/_dqctl"
ctl completions fish >"$tree/completions/dqctl.fish"
[ -s "$tree/man/dqctl.1" ] || die "dqctl man wrote no dqctl.1"

tar --create --format=gnu --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
    --mtime="@$SOURCE_DATE_EPOCH" \
    --directory "$stage" "$name" | gzip -9n >"$dist/$name.tar.gz"

# --- the Debian package ---

if command -v dpkg-deb >/dev/null; then
    libraries=$("${tools}objdump" -p "$dist/libdq.so" "$dist/dqctl" | awk '$1 == "NEEDED" { print $2 }' | sort -u)
    glibc=$(printf '%s\n' "$(needs GLIBC "$dist/libdq.so")" "$(needs GLIBC "$dist/dqctl")" | sort -V | tail -n 1)
    gcc=$(printf '%s\n' "$(needs GCC "$dist/libdq.so")" "$(needs GCC "$dist/dqctl")" | sort -V | tail -n 1)
    depends="libc6 (>= $glibc)"
    for library in $libraries; do
        case $library in
        libc.so.6 | libm.so.6 | libdl.so.2 | libpthread.so.0 | librt.so.1 | ld-linux-*) ;;
        libgcc_s.so.1) depends="$depends, libgcc-s1 (>= $gcc)" ;;
        *) die "which package of Debian has $library? Add it in scripts/dist.sh" ;;
        esac
    done
    example /usr/lib/redis/modules/libdq.so "To try it:" "$stage/redis.conf.example"
    sed -i '/^# `make run` uses it/d' "$stage/redis.conf.example"
    packaging/debian/build.sh "$tree" "$stage/redis.conf.example" "$version" "$debian" "$depends" "$dist"
else
    echo "dq: no Debian package: dpkg-deb is missing"
fi

(cd "$dist" && sha256sum -- libdq.so dqctl *.tar.gz *.cdx.json $(ls | grep '\.deb$') >SHA256SUMS)
echo "dq: built in ${dist#"$root"/}:"
cat "$dist/SHA256SUMS"
