#!/bin/sh
# Sees to the programs that the local cluster and the tests take from the
# distribution: installs what is missing where it may and knows how, and
# otherwise says in one line what is missing and the command for it. python3 is
# for the SDK's wire format in another language.
set -eu

PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin

command -v go >/dev/null || {
	echo "missing: go, version 1.26 or newer: see https://go.dev/doc/install" >&2
	exit 1
}

missing=
for pair in runc:runc nft:nftables ip:iproute2 python3:python3; do
	command -v "${pair%%:*}" >/dev/null || missing="$missing ${pair##*:}"
done
[ -n "$missing" ] || exit 0

if command -v apt-get >/dev/null; then
	install="apt-get install -y --no-install-recommends$missing"
elif command -v dnf >/dev/null; then
	install="dnf install -y$(echo "$missing" | sed 's/iproute2/iproute/')"
else
	echo "missing:$missing; install them with the package manager of this system" >&2
	exit 1
fi
if [ "$(id -u)" != 0 ]; then
	echo "missing:$missing; run: sudo $install" >&2
	exit 1
fi

echo "installing$missing"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if command -v apt-get >/dev/null; then
	export DEBIAN_FRONTEND=noninteractive
	# The list of packages may be missing, or older than the archive.
	$install >"$log" 2>&1 || { apt-get update >"$log" 2>&1 && $install >>"$log" 2>&1; }
else
	$install >"$log" 2>&1
fi || {
	tail -n 5 "$log" >&2
	echo "could not install:$missing; run: $install" >&2
	exit 1
}
