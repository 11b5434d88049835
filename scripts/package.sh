#!/usr/bin/env bash
# Builds every package from one binary: wheels, npm packages, a Debian package, an archive with the Homebrew formula, the
# Helm chart, and the list of what is inside (SBOM). Publishes nothing.
# Usage: package.sh [BINARY [DIRECTORY]]     (by default target/release/stepwell into target/packages/release)
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
binary=$(realpath "${1:-$root/target/release/stepwell}")
to=$(realpath -m "${2:-$root/target/packages/release}")
cd "$root"
[ -x "$binary" ] || { echo "$binary is not there: build it with cargo build --release -p stepwell" >&2; exit 1; }

rm -rf "$to"
mkdir -p "$to"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# A release binary is stripped already; others lose their debug information here.
strip -o "$work/stepwell" "$binary"
binary=$work/stepwell
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 315532800)}
export SOURCE_DATE_EPOCH

mkdir "$to/chart"
# Two packages of one version would disagree without anyone noticing.
same_version=(
  sdk/python/pyproject.toml sdk/typescript/package.json packages/npm/package.json deploy/helm/stepwell/Chart.yaml
)
for file in "${same_version[@]}"; do
  if ! grep -Eq "^ *\"?version\"?( =|:) \"?$version\"?,?$" "$file"; then
    echo "$file has another version than $version" >&2
    exit 1
  fi
done

python3 scripts/package/wheel.py "$to"
python3 scripts/package/wheel.py "$to" --binary "$binary"
python3 scripts/package/npm.py "$to" "$binary"
bash scripts/package/deb.sh "$to" "$binary"

# The archive for Homebrew and for people; the formula gets the digest of this platform, and of others that lie beside it.
platform=$(uname -s | tr '[:upper:]' '[:lower:]')-$(uname -m | sed 's/x86_64/x64/; s/aarch64/arm64/')
cp LICENSE-APACHE LICENSE-MIT CHANGELOG.md "$work/"
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -C "$work" -c \
  CHANGELOG.md LICENSE-APACHE LICENSE-MIT stepwell | gzip "-n${PACKAGE_COMPRESSION:-9}" >"$to/stepwell-$platform.tar.gz"
echo "$to/stepwell-$platform.tar.gz"
formula=$(sed "s/@VERSION@/$version/g" packages/homebrew/stepwell.rb)
for archive in "$to"/stepwell-*-*.tar.gz; do
  name=$(basename "$archive" .tar.gz)
  formula=${formula//@SHA256_${name#stepwell-}@/$(sha256sum "$archive" | cut -d ' ' -f 1)}
done
printf '%s\n' "$formula" >"$to/stepwell.rb"

tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -C deploy/helm -c stepwell |
  gzip -n9 >"$to/chart/stepwell-$version.tgz"
echo "$to/chart/stepwell-$version.tgz"
python3 scripts/package/sbom.py "$to/stepwell-$version.cdx.json"
(cd "$to" && find . -type f -printf "%P\n" | LC_ALL=C sort | xargs sha256sum -- >"$work/SHA256SUMS")
cp "$work/SHA256SUMS" "$to/"
ls -sh "$to"
