#!/usr/bin/env bash
# Builds the Debian package: the binary, its manual pages and completions, the systemd unit and the settings from deploy/.
# Needs dpkg-deb only. The same input gives the same bytes.
# Usage: deb.sh DIRECTORY BINARY     (prints the package it wrote)
set -euo pipefail
to=$(realpath -m "$1") binary=$(realpath "$2")
cd "$(dirname "$0")/../.."

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
architecture=$(dpkg --print-architecture)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 315532800)}
export SOURCE_DATE_EPOCH
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT

put() { install -D -m "$1" "$2" "$stage/$3"; }
put 0755 "$binary" usr/bin/stepwell
put 0644 deploy/systemd/sysusers.conf usr/lib/sysusers.d/stepwell.conf
put 0644 deploy/systemd/stepwell.yaml etc/stepwell/stepwell.yaml
put 0600 deploy/systemd/environment etc/stepwell/environment
# The package owns /usr/bin; /usr/local belongs to the administrator.
sed 's|/usr/local/bin/|/usr/bin/|' deploy/systemd/stepwell.service >"$stage/unit"
put 0644 "$stage/unit" usr/lib/systemd/system/stepwell.service
rm "$stage/unit"
put 0644 packages/debian/copyright usr/share/doc/stepwell/copyright
mkdir -p "$stage/usr/share/man/man1" "$stage/usr/share/bash-completion/completions" \
  "$stage/usr/share/zsh/vendor-completions" "$stage/usr/share/fish/vendor_completions.d"
"$binary" man "$stage/usr/share/man/man1" >/dev/null 2>&1
gzip -9n "$stage"/usr/share/man/man1/*
"$binary" completion bash >"$stage/usr/share/bash-completion/completions/stepwell"
"$binary" completion zsh >"$stage/usr/share/zsh/vendor-completions/_stepwell"
"$binary" completion fish >"$stage/usr/share/fish/vendor_completions.d/stepwell.fish"

# The oldest glibc that has every symbol the program needs; none for a static program.
glibc=$(grep -ao 'GLIBC_2\.[0-9]*' "$binary" | sort -uV | tail -n 1 | sed 's/GLIBC_//')
mkdir "$stage/DEBIAN"
cat >"$stage/DEBIAN/control" <<CONTROL
Package: stepwell
Version: $version
Architecture: $architecture
Maintainer: The Stepwell authors <maintainers@stepwell.example>
Section: net
Priority: optional
Depends: ${glibc:+libc6 (>= $glibc), }ca-certificates
Recommends: systemd
Installed-Size: $(du -sk --exclude=DEBIAN "$stage" | cut -f 1)
Description: durable workflow engine in one binary
 A server that runs workflows of API calls, tools, code, queries, waits and
 approvals, and loses nothing that it acknowledged when it is killed.
CONTROL
printf '/etc/stepwell/stepwell.yaml\n/etc/stepwell/environment\n' >"$stage/DEBIAN/conffiles"
for script in postinst prerm postrm; do
  install -m 0755 "packages/debian/$script" "$stage/DEBIAN/$script"
done
find "$stage" -exec touch -hd "@$SOURCE_DATE_EPOCH" {} +
mkdir -p "$to"
file=$to/stepwell_${version}_$architecture.deb
# A quick compression for tries; releases leave it to dpkg-deb.
dpkg-deb --root-owner-group ${PACKAGE_COMPRESSION:+-Zgzip "-z$PACKAGE_COMPRESSION"} --build "$stage" "$file" >/dev/null
echo "$file"
