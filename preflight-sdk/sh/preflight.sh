# preflight.sh: what a /bin/preflight written in POSIX sh needs.
#
#     . /usr/share/preflight/preflight.sh
#
#     no_flex_volumes() {
#         volumes=$(oc get pv -o name)
#         preflight_pass "no volume uses flexVolume"
#     }
#     preflight_main NoFlexVolumes no_flex_volumes
#
# A check is a function. It runs in a subshell of its own with set -e, says
# what it found with the functions below, and must say something. Of several
# outcomes the worst counts: Fail, Unknown, Warn, Skipped, Pass. A function
# that says nothing, or ends with another status than 0, could not tell.
# Leave alone what begins with preflight__.
#
# It needs od, fold and, for the deadline, date and sleep; bash, dash and
# busybox run it. It creates no file. ../WIRE.md specifies what it writes. On
# SIGTERM and at the deadline it ends at once, and what it had written by then
# counts: the checks that had not ended are Unknown.

# What a check says: MESSAGE names the object, REMEDY is a command to type,
# REASON one CamelCase word for machines. Texts of more than 2048 bytes are cut.
preflight_pass() { preflight__say Pass "$1" '' "${2:-Passed}"; }                  # MESSAGE [REASON]
preflight_skip() { preflight__say Skipped "$1" '' "${2:-NotApplicable}"; }        # MESSAGE [REASON]
preflight_warn() { preflight__say Warn "$1" "${2:-}" "${3:-CheckWarned}"; }       # MESSAGE [REMEDY [REASON]]
preflight_fail() { preflight__say Fail "$1" "${2:-}" "${3:-CheckFailed}"; }       # MESSAGE [REMEDY [REASON]]
preflight_unknown() { preflight__say Unknown "$1" "${2:-}" "${3:-Inconclusive}"; } # MESSAGE [REMEDY [REASON]]

# preflight_object APIVERSION KIND NAMESPACE NAME: what the finding is about.
preflight_object() (
	LC_ALL=C
	namespace=
	[ -z "$3" ] || namespace="\"namespace\":\"$(preflight__escape "$3")\","
	printf 'object\t{"apiVersion":"%s","kind":"%s",%s"name":"%s"}\n' \
		"$(preflight__escape "$1")" "$(preflight__escape "$2")" "$namespace" "$(preflight__escape "$4")" >&3
)

# preflight_evidence KEY VALUE: a short fact. No secrets.
preflight_evidence() (
	LC_ALL=C
	printf 'evidence\t"%s":"%s"\n' "$(preflight__escape "$1")" "$(preflight__escape "$2")" >&3
)

# preflight_url URL: documentation for who reads the finding.
preflight_url() (
	LC_ALL=C
	printf 'url\t%s\n' "$(preflight__escape "$1")" >&3
)

# preflight_main NAME FUNCTION ...: asks all of them, and ends the process.
# Exit codes: 0 nothing in the way, 2 bad usage, 3 a check failed, 4 could not
# tell.
preflight_main() {
	set +e
	preflight__log=${PREFLIGHT_TERMINATION_LOG:-/dev/termination-log}
	preflight__tab=$(printf '\t')
	preflight__newline='
'
	preflight__budget=${PREFLIGHT_RESULT_BYTES:-4096}
	preflight__longest=0
	preflight__full='' preflight__short='' preflight__bare=''
	preflight__worst=Pass preflight__count=0

	preflight__wrong=$(preflight__validate "$@")
	[ -z "$preflight__wrong" ] || preflight__refuse 2 InvalidCheck "$preflight__wrong"
	preflight__left=$(preflight__time_left)
	case $preflight__left in
	wrong) preflight__refuse 2 InvalidArguments "PREFLIGHT_DEADLINE is no time like 2026-01-31T10:00:00Z" ;;
	-* | 0) preflight__refuse 4 Timeout "the deadline of the run has passed" ;;
	esac

	# The shell hears a signal between two commands only, but while it waits
	# at once: so the checks are the business of another process.
	preflight__process=
	trap '[ -z "$preflight__process" ] || kill "$preflight__process" 2>/dev/null' TERM INT HUP
	preflight__work "$@" &
	preflight__process=$!
	preflight__timer=
	if [ -n "$preflight__left" ]; then
		preflight__watch "$preflight__left" "$preflight__process" </dev/null >/dev/null 2>&1 &
		preflight__timer=$!
	fi
	wait "$preflight__process"
	preflight__code=$?
	if [ "$preflight__code" -gt 128 ]; then
		# Either the work was ended, or it was the waiting that was.
		wait "$preflight__process"
		preflight__code=$?
	fi
	[ -z "$preflight__timer" ] || kill "$preflight__timer" 2>/dev/null
	case $preflight__code in
	0 | 2 | 3 | 4) exit "$preflight__code" ;;
	esac
	echo "preflight: ended before all checks had: what is missing is Unknown" >&2
	exit 4
}

# preflight__work NAME FUNCTION ... runs the checks, with an honest account of
# them in the termination log at each moment.
preflight__work() {
	while [ $# -gt 0 ]; do
		preflight__report running "$@"
		preflight__name=$1
		preflight__said=$({
			set -e
			"$2"
		} 3>&1 >&2)
		preflight__judge "$1" $? "$preflight__said"
		shift 2
	done
	preflight__report final
	preflight__exit
}

preflight__exit() {
	case $preflight__worst in
	Fail) exit 3 ;;
	Unknown) exit 4 ;;
	esac
	exit 0
}

# preflight__watch SECONDS PROCESS ends the process when the time is up.
preflight__watch() {
	preflight__sleep=
	trap '[ -z "$preflight__sleep" ] || kill "$preflight__sleep"; exit 0' TERM
	sleep "$1" &
	preflight__sleep=$!
	wait "$preflight__sleep"
	kill "$2"
}

# preflight__validate NAME FUNCTION ... prints the first thing that is wrong.
preflight__validate() (
	LC_ALL=C
	preflight__run_id "${PREFLIGHT_RUN_ID:-}" || { echo "PREFLIGHT_RUN_ID is not of at most 64 letters, digits, dots, dashes and underscores" && exit; }
	case $preflight__budget in
	'' | *[!0-9]* | ????????*) echo "PREFLIGHT_RESULT_BYTES is no number of at least 512" && exit ;;
	esac
	[ "$preflight__budget" -ge 512 ] || { echo "PREFLIGHT_RESULT_BYTES is no number of at least 512" && exit; }
	[ $# -gt 0 ] || echo "no checks: call preflight_main with at least one"
	seen=' '
	while [ $# -gt 0 ]; do
		preflight__camel_case "$1" || { echo "check name \"$1\" is not CamelCase of at most 63 letters and digits" && exit; }
		case $seen in
		*" $1 "*) echo "check name \"$1\" is taken by an earlier check" && exit ;;
		esac
		seen="$seen$1 "
		command -v "${2:-}" >/dev/null || { echo "check \"$1\" has no function" && exit; }
		shift 2
	done
)

preflight__run_id() (
	LC_ALL=C
	case $1 in
	*[!A-Za-z0-9._-]*) exit 1 ;;
	esac
	[ ${#1} -le 64 ]
)

preflight__camel_case() (
	LC_ALL=C
	case $1 in
	[!A-Z]* | *[!A-Za-z0-9]* | '') exit 1 ;;
	esac
	[ ${#1} -le 63 ]
)

# preflight__time_left prints the seconds until the checks must end, up to five
# before the deadline; nothing when there is none.
preflight__time_left() (
	LC_ALL=C
	digits='[0-9][0-9]'
	# shellcheck disable=SC2254 # The patterns are patterns.
	case ${PREFLIGHT_DEADLINE:-} in
	'') exit ;;
	$digits$digits-$digits-${digits}T$digits:$digits:${digits}Z | $digits$digits-$digits-${digits}T$digits:$digits:$digits.*Z) ;;
	*) echo wrong && exit ;;
	esac
	IFS=-T:.Z
	set -f
	# shellcheck disable=SC2086 # It is to be split.
	set -- $PREFLIGHT_DEADLINE
	# Days of the civil calendar, counted from March.
	year=$1 month=${2#0} day=${3#0}
	[ "$month" -gt 2 ] || { year=$((year - 1)) && month=$((month + 12)); }
	days=$((365 * year + year / 4 - year / 100 + year / 400 + (153 * (month - 3) + 2) / 5 + day - 719469))
	left=$((days * 86400 + ${4#0} * 3600 + ${5#0} * 60 + ${6#0} - $(date +%s)))
	margin=$((left / 10))
	[ "$margin" -lt 5 ] || margin=5
	echo "$((left - margin))"
)

# preflight__say OUTCOME MESSAGE REMEDY REASON sends one line to the process
# that collects them, so that it also counts when it is said in a pipe.
preflight__say() (
	LC_ALL=C
	reason=$4
	if ! preflight__camel_case "$reason"; then
		echo "$preflight__name: reason \"$reason\" is not a CamelCase word: ignored" >&2
		reason=
	fi
	message=$(preflight__cut "$2" 2048) remedy=$(preflight__cut "$3" 2048)
	printf '%s: %s: %s\n' "$preflight__name" "$1" "$message" >&2
	printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$1" "$reason" \
		"$(preflight__escape "$message")" "$(preflight__escape "$(preflight__cut "$message" 128)")" \
		"$(preflight__escape "$remedy")" "$(preflight__escape "$(preflight__cut "$remedy" 128)")" >&3
)

# preflight__cut TEXT LIMIT prints whole characters of it, at most LIMIT bytes.
# The caller has set LC_ALL=C.
preflight__cut() {
	if [ ${#1} -le "$2" ]; then
		printf %s "$1"
		return
	fi
	# The sign takes three bytes, and a character may begin on the fourth last.
	printf "%.$(printf "%.$(($2 - 2))s" "$1" | od -An -v -tu1 | {
		at=0 start=0
		while read -r line; do
			for byte in $line; do
				case $byte in
				12[89] | 1[3-8]? | 19[01]) ;;
				*) start=$at ;;
				esac
				at=$((at + 1))
			done
		done
		echo "$start"
	})s…" "$1"
}

# preflight__escape TEXT prints it as the inside of a JSON string. The caller
# has set LC_ALL=C.
preflight__escape() {
	rest=$1
	while :; do
		plain=${rest%%[\"\\[:cntrl:]]*}
		printf %s "$plain"
		rest=${rest#"$plain"}
		[ -n "$rest" ] || return 0
		char=${rest%"${rest#?}"}
		rest=${rest#?}
		case $char in
		[\"\\]) printf '\\%s' "$char" ;;
		*) printf '\\u%04x' "'$char" ;;
		esac
	done
}

# preflight__judge NAME STATUS STATEMENTS makes the finding of one check.
preflight__judge() {
	preflight__outcome='' preflight__reason='' preflight__url='' preflight__objects='' preflight__evidence=''
	preflight__message='' preflight__message_short='' preflight__remedy='' preflight__remedy_short=''
	preflight__rest=$3
	while [ -n "$preflight__rest" ]; do
		preflight__line=${preflight__rest%%"$preflight__newline"*}
		preflight__rest=${preflight__rest#"$preflight__line"}
		preflight__rest=${preflight__rest#"$preflight__newline"}
		preflight__hear "$preflight__line"
	done
	if [ "$2" -ne 0 ]; then
		preflight__complain "the check ended with the status $2; its log may say why"
	elif [ -z "$preflight__outcome" ]; then
		preflight__complain "the check said nothing"
	fi
	case $preflight__outcome in
	Pass | Skipped) preflight__remedy='' preflight__remedy_short='' ;;
	esac

	preflight__head="{\"name\":\"$1\",\"outcome\":\"$preflight__outcome\",\"reason\":\"$preflight__reason\""
	preflight__texts=",\"message\":\"$preflight__message\""
	[ -z "$preflight__remedy" ] || preflight__texts="$preflight__texts,\"remediation\":\"$preflight__remedy\""
	[ -z "$preflight__url" ] || preflight__texts="$preflight__texts,\"url\":\"$preflight__url\""
	[ -z "$preflight__objects" ] || preflight__texts="$preflight__texts,\"objects\":[${preflight__objects#,}]"
	[ -z "$preflight__evidence" ] || preflight__texts="$preflight__texts,\"evidence\":{${preflight__evidence#,}}"
	preflight__full="$preflight__full,$preflight__head$preflight__texts}"
	preflight__short="$preflight__short,$preflight__head,\"message\":\"$preflight__message_short\",\"remediation\":\"$preflight__remedy_short\"}"
	preflight__bare="$preflight__bare,$preflight__head}"
	preflight__count=$((preflight__count + 1))
	preflight__worse "$preflight__outcome" "$preflight__worst" && preflight__worst=$preflight__outcome
}

# preflight__complain MESSAGE is what is said about a check that could not tell.
preflight__complain() {
	preflight__hear "Unknown${preflight__tab}CheckError$preflight__tab$1$preflight__tab$1$preflight__tab$preflight__tab"
}

# preflight__hear STATEMENT takes one line of what the check said.
preflight__hear() {
	preflight__kind=${1%%"$preflight__tab"*}
	set -- "${1#*"$preflight__tab"}"
	case $preflight__kind in
	object) preflight__objects="$preflight__objects,$1" && return ;;
	evidence) preflight__evidence="$preflight__evidence,$1" && return ;;
	url) preflight__url=$1 && return ;;
	esac

	preflight__why=${1%%"$preflight__tab"*} && set -- "${1#*"$preflight__tab"}"
	preflight__text=${1%%"$preflight__tab"*} && set -- "${1#*"$preflight__tab"}"
	preflight__text_short=${1%%"$preflight__tab"*} && set -- "${1#*"$preflight__tab"}"
	preflight__fix=${1%%"$preflight__tab"*}
	preflight__fix_short=${1#*"$preflight__tab"}
	[ -z "$preflight__remedy" ] || preflight__fix="${preflight__fix:+\\n}$preflight__fix"
	preflight__remedy="$preflight__remedy$preflight__fix"
	preflight__remedy_short=${preflight__remedy_short:-$preflight__fix_short}

	# The cause comes first, and a pass is no part of a failure.
	if [ -z "$preflight__outcome" ] || { [ "$preflight__outcome" = Pass ] && [ "$preflight__kind" != Pass ]; }; then
		preflight__message=$preflight__text
	elif [ "$preflight__kind" = Pass ] && [ "$preflight__outcome" != Pass ]; then
		return
	elif preflight__worse "$preflight__kind" "$preflight__outcome"; then
		preflight__message="$preflight__text; $preflight__message"
	else
		preflight__message="$preflight__message; $preflight__text"
		return
	fi
	preflight__outcome=$preflight__kind
	preflight__reason=$preflight__why
	preflight__message_short=$preflight__text_short
}

# preflight__worse ONE OTHER compares outcomes.
preflight__worse() {
	case $1,$2 in
	Fail,Fail | Unknown,Unknown | Warn,Warn | Skipped,Skipped | Pass,*) return 1 ;;
	Fail,* | Unknown,[!F]* | Warn,[SP]* | Skipped,P*) return 0 ;;
	esac
	return 1
}

# preflight__refuse CODE REASON WHY ends without a check.
preflight__refuse() {
	echo "preflight: $3" >&2
	preflight__budget=4096
	preflight__name=Preflight
	preflight__run_id "${PREFLIGHT_RUN_ID:-}" || PREFLIGHT_RUN_ID=
	preflight__judge Preflight 0 "$(preflight_unknown "no check was run: $3" "Correct the program or its Job manifest." "$2" 3>&1 2>/dev/null)"
	preflight__report final
	exit "$1"
}

# preflight__report STATE [NAME FUNCTION ...] writes what is known, with the
# checks that have not ended, into the termination log. The last word goes into
# the log too, where it was too long or could not be written.
preflight__report() {
	preflight__state=$1
	shift
	preflight__open='' preflight__open_bare=''
	preflight__pending=0
	while [ $# -gt 0 ]; do
		preflight__head="{\"name\":\"$1\",\"outcome\":\"Unknown\",\"reason\":\"NotFinished\""
		if [ "$preflight__pending" -eq 0 ]; then
			preflight__open=",$preflight__head,\"message\":\"$1 was running when the process ended\"}"
		else
			preflight__open="$preflight__open,$preflight__head,\"message\":\"$1 had not started when the process ended\"}"
		fi
		preflight__open_bare="$preflight__open_bare,$preflight__head}"
		preflight__pending=$((preflight__pending + 1))
		shift 2
	done
	preflight__line=$(preflight__fit)
	if [ -f "$preflight__log" ] && [ -w "$preflight__log" ]; then
		preflight__overwrite "$preflight__line"
		preflight__line=${preflight__line%%'"truncated":true'*}
		case $preflight__line in
		*\}) return ;;
		esac
	elif [ -z "${PREFLIGHT_RUN_ID:-}" ]; then
		return
	fi
	[ "$preflight__state" != final ] || preflight__print "$(preflight__document "$preflight__full" '')"
}

# preflight__fit prints the frame, in the first of four lengths that fits.
preflight__fit() (
	LC_ALL=C
	[ "$preflight__budget" -le 4096 ] || preflight__budget=4096
	short='"truncated":true,'
	worst=$preflight__worst
	[ "$preflight__pending" -eq 0 ] || [ "$worst" = Fail ] || worst=Unknown
	total=$((preflight__count + preflight__pending))
	for document in \
		"$(preflight__document "$preflight__full$preflight__open" '')" \
		"$(preflight__document "$preflight__short$preflight__open" "$short")" \
		"$(preflight__document "$preflight__bare$preflight__open_bare" "$short")" \
		"$(preflight__document ",{\"name\":\"Preflight\",\"outcome\":\"$worst\",\"reason\":\"ResultTooLong\",\"message\":\"$total checks; their names are in the log\"}" "$short")"; do
		# The head of a frame and the newline take at most 33 bytes.
		[ $((${#document} + 33)) -gt "$preflight__budget" ] || break
	done
	preflight__frame json "$document"
)

# preflight__document FINDINGS TRUNCATED prints the JSON.
preflight__document() {
	run=
	[ -z "${PREFLIGHT_RUN_ID:-}" ] || run="\"runID\":\"$PREFLIGHT_RUN_ID\","
	printf '{"state":"%s",%s%s"findings":[%s]}' "$preflight__state" "$run" "$2" "${1#,}"
}

# preflight__frame ENCODING PAYLOAD prints a frame without its newline.
preflight__frame() {
	printf 'preflight/1 %s %s %s' "$1" "$(printf %s "$2" | preflight__checksum)" "$2"
}

# preflight__checksum prints the length and the CRC-32 of its input, which it
# takes four bits at a time, with the polynomial of IEEE 802.3 in a table.
preflight__checksum() (
	IFS=' '
	# shellcheck disable=SC2034 # The names are put together below.
	t0=0 t1=498536548 t2=997073096 t3=651767980 t4=1994146192 t5=1802195444 t6=1303535960 t7=1342533948 \
		t8=3988292384 t9=4027552580 t10=3604390888 t11=3412177804 t12=2607071920 t13=2262029012 t14=2685067896 t15=3183342108
	sum=4294967295 length=0
	od -An -v -tu1 | {
		while read -r line; do
			for byte in $line; do
				sum=$((sum ^ byte)) length=$((length + 1))
				at=$((sum & 15)) && sum=$(((sum >> 4) ^ t$at))
				at=$((sum & 15)) && sum=$(((sum >> 4) ^ t$at))
			done
		done
		printf '%d %08x' "$length" $((sum ^ 4294967295))
	}
)

# preflight__overwrite LINE puts it over the old one, which it never empties:
# spaces behind a frame are ignored.
preflight__overwrite() {
	preflight__length=$(LC_ALL=C && echo ${#1})
	if [ "$preflight__length" -lt "$preflight__longest" ]; then
		printf "%s%$((preflight__longest - preflight__length))s\n" "$1" '' 1<>"$preflight__log"
		return
	fi
	preflight__longest=$preflight__length
	printf '%s\n' "$1" 1<>"$preflight__log"
}

# preflight__print DOCUMENT writes it to the log, in parts where it is long.
preflight__print() (
	LC_ALL=C
	line=$(preflight__frame json "$1")
	echo
	if [ ${#line} -le 8192 ]; then
		printf '%s\n' "$line"
		exit
	fi
	count=$(((${#line} + 8191) / 8192))
	printf '%s\n' "$line" | fold -b -w 8192 | {
		number=0
		while IFS= read -r part; do
			number=$((number + 1))
			preflight__frame part "$number/$count $part"
			echo
		done
	}
)
