#!/usr/bin/env bash
# Builds the Debian package from what scripts/dist.sh has collected.
#   packaging/debian/build.sh TREE EXAMPLE VERSION ARCHITECTURE DEPENDS DIRECTORY
# TREE: the directory of the tarball. EXAMPLE: redis.conf.example with the path of the installed module. DIRECTORY gets
# the package. SOURCE_DATE_EPOCH is the time of all files. Needs dpkg-deb, and neither debhelper nor root.
set -euo pipefail
umask 022
tree=$1 example=$2 version=$3 architecture=$4 depends=$5 directory=$6
here=$(cd "$(dirname "$0")" && pwd)
package=redis-module-dq # Debian has a package `dq` already, and names modules like this
revision=1

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
put() { install -D -m "$1" "$2" "$root/$3"; }
put_gz() { put 644 "$1" "$2" && gzip -9n "$root/$2"; }
share=usr/share/$package
doc=usr/share/doc/$package

# Debian's units allow their servers to map executable code from below /usr/lib only.
put 755 "$tree/libdq.so" usr/lib/redis/modules/libdq.so
mkdir -p "$root/usr/lib/valkey/modules"
ln -s ../../redis/modules/libdq.so "$root/usr/lib/valkey/modules/libdq.so"
put 644 "$here/dq.conf" "$share/dq.conf"
put 755 "$here/dq-enable" usr/sbin/dq-enable

put 755 "$tree/dqctl" usr/bin/dqctl
for page in "$tree"/man/*.1; do put_gz "$page" "usr/share/man/man1/${page##*/}"; done
put 644 "$tree/completions/dqctl.bash" usr/share/bash-completion/completions/dqctl
put 644 "$tree/completions/_dqctl" usr/share/zsh/vendor-completions/_dqctl
put 644 "$tree/completions/dqctl.fish" usr/share/fish/vendor_completions.d/dqctl.fish
find "$tree/contrib" -name '*.service' | sort | while read -r unit; do
    put 644 "$unit" "usr/lib/systemd/system/${unit##*/}"
done

put 644 "$here/copyright" "$doc/copyright"
put_gz "$tree/CHANGELOG.md" "$doc/changelog"
put_gz "$tree/README.md" "$doc/README.md"
put_gz "$tree/THIRD-PARTY-LICENSES" "$doc/THIRD-PARTY-LICENSES"
put 644 "$example" "$doc/examples/redis.conf.example"
cp -r "$tree/contrib" "$root/$doc/examples/contrib"
find "$root/$doc/examples/contrib" -name '*.service' -delete
find "$root/$doc/examples/contrib" -type d -empty -delete
cat >"$root/$doc/changelog.Debian" <<EOF
$package ($version-$revision) unstable; urgency=medium

  * Release $version: see changelog.gz.

 -- the dq authors <dq@localhost>  $(date -u -R -d "@$SOURCE_DATE_EPOCH")
EOF
gzip -9n "$root/$doc/changelog.Debian"

# dpkg-gencontrol counts like this: files in whole KiB, and one for everything else.
size=$(find "$root" -mindepth 1 -printf '%y %s\n' |
    awk '{ kib += $1 == "f" ? int(($2 + 1023) / 1024) : 1 } END { print kib }')
mkdir "$root/DEBIAN"
(cd "$root" && find . -path ./DEBIAN -prune -o -type f -printf '%P\n' | LC_ALL=C sort | xargs md5sum) \
    >"$root/DEBIAN/md5sums"
chmod 644 "$root/DEBIAN/md5sums"
install -m 755 "$here/postinst" "$here/prerm" "$here/postrm" "$root/DEBIAN"
cat >"$root/DEBIAN/control" <<EOF
Package: $package
Version: $version-$revision
Architecture: $architecture
Maintainer: the dq authors <dq@localhost>
Installed-Size: $size
Depends: $depends
Suggests: redis-server (>= 5:7.0) | valkey-server (>= 8.0)
Provides: valkey-module-dq (= $version-$revision)
Section: database
Priority: optional
Description: delay queue as a native data type of Redis and Valkey
 A module for Redis 7.0 and Valkey 8.0 or newer. One key is one queue. A message
 is pushed with a delay or a time, delivered when it is due, leased to one
 consumer, and delivered again if that consumer does not confirm in time that
 the work is done.
 .
 dqctl is the command line: the daily commands, workers that run a program for
 each message, and metrics for Prometheus.
EOF

find "$root" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
# One thread: the bytes that xz writes depend on the number of threads.
DPKG_DEB_THREADS_MAX=1 dpkg-deb --root-owner-group -Zxz --build "$root" \
    "$directory/${package}_$version-${revision}_$architecture.deb"
