# preflight.sh: functions for a /bin/preflight in POSIX sh.
#
#     . "$(dirname "$0")/preflight.sh"
#
#     no_flex_volumes() {
#         volumes=$(oc get pv -o name)
#         preflight_pass "no volume uses flexVolume"
#     }
#     preflight_main NoFlexVolumes no_flex_volumes
#
# A check is a function. It runs in a subshell with set -e, reports with the
# functions below, and must report at least one outcome. The most severe outcome
# counts: Fail, Unknown, Warn, Skipped, Pass. A check that reports nothing, or
# exits with a status other than 0, is inconclusive: Unknown. Names that begin
# with preflight__ are reserved.
#
# With the argument --help the script prints its usage and runs no check.
#
# Required commands: od and fold; for a deadline also date and sleep. Tested with
# bash, dash and busybox. No files are created. ../WIRE.md specifies the output. On
# SIGTERM and at the deadline the script ends at once; the checks that have not
# finished are Unknown.

# The arguments of the script, which a sourced file shares.
preflight__help=
for preflight__argument in "$@"; do
	case $preflight__argument in
	-h | --help) preflight__help=yes ;;
	esac
done

# Functions to report an outcome. MESSAGE names the object, REMEDY is a sentence,
# REASON is one CamelCase word. Texts are truncated to 2048 bytes.
preflight_pass() { preflight__emit Pass "$1" '' "${2:-Passed}"; }                  # MESSAGE [REASON]
preflight_skip() { preflight__emit Skipped "$1" '' "${2:-NotApplicable}"; }        # MESSAGE [REASON]
preflight_warn() { preflight__emit Warn "$1" "${2:-}" "${3:-CheckWarned}"; }       # MESSAGE [REMEDY [REASON]]
preflight_fail() { preflight__emit Fail "$1" "${2:-}" "${3:-CheckFailed}"; }       # MESSAGE [REMEDY [REASON]]
preflight_unknown() { preflight__emit Unknown "$1" "${2:-}" "${3:-Inconclusive}"; } # MESSAGE [REMEDY [REASON]]

# preflight_object APIVERSION KIND NAMESPACE NAME adds an affected object.
preflight_object() (
	LC_ALL=C
	namespace=
	[ -z "$3" ] || namespace="\"namespace\":\"$(preflight__escape "$3")\","
	printf 'object\t{"apiVersion":"%s","kind":"%s",%s"name":"%s"}\n' \
		"$(preflight__escape "$1")" "$(preflight__escape "$2")" "$namespace" "$(preflight__escape "$4")" >&3
)

# preflight_command COMMAND adds a command of the remedy, which reports show in full. A
# command of more than 4096 bytes is not reported.
preflight_command() (
	LC_ALL=C
	if [ ${#1} -gt 4096 ]; then
		echo "$preflight__name: command of ${#1} bytes: ignored" >&2
		exit
	fi
	printf 'action\t{"command":"%s"}\n' "$(preflight__escape "$1")" >&3
)

# preflight_evidence KEY VALUE adds a short fact. It must not contain secrets.
preflight_evidence() (
	LC_ALL=C
	printf 'evidence\t"%s":"%s"\n' "$(preflight__escape "$1")" "$(preflight__escape "$2")" >&3
)

# preflight_url URL sets the documentation of the finding.
preflight_url() (
	LC_ALL=C
	printf 'url\t%s\n' "$(preflight__escape "$1")" >&3
)

# preflight_main NAME FUNCTION ... runs the checks and ends the process. Exit codes:
# see preflight__usage.
preflight_main() {
	set +e
	preflight__log=${PREFLIGHT_TERMINATION_LOG:-/dev/termination-log}
	preflight__tab=$(printf '\t')
	preflight__newline='
'
	[ -z "$preflight__help" ] || preflight__usage "$@"
	preflight__budget=${PREFLIGHT_RESULT_BYTES:-4096}
	preflight__longest=0
	preflight__full='' preflight__short='' preflight__bare=''
	preflight__worst=Pass preflight__count=0

	preflight__violation=$(preflight__validate "$@")
	[ -z "$preflight__violation" ] || preflight__reject 2 InvalidCheck "$preflight__violation"
	preflight__left=$(preflight__time_left)
	case $preflight__left in
	invalid) preflight__reject 2 InvalidArguments "PREFLIGHT_DEADLINE: want a time like 2026-01-31T10:00:00Z" ;;
	-* | 0) preflight__reject 4 Timeout "the deadline of the run has passed" ;;
	esac

	# A shell handles a signal after the current command, but interrupts wait.
	# Therefore the checks run in another process.
	preflight__process=
	trap '[ -z "$preflight__process" ] || kill "$preflight__process" 2>/dev/null' TERM INT HUP
	preflight__run_checks "$@" &
	preflight__process=$!
	preflight__timer=
	if [ -n "$preflight__left" ]; then
		preflight__kill_after "$preflight__left" "$preflight__process" </dev/null >/dev/null 2>&1 &
		preflight__timer=$!
	fi
	wait "$preflight__process"
	preflight__code=$?
	if [ "$preflight__code" -gt 128 ]; then
		# A signal ended either the checks or only the wait.
		wait "$preflight__process"
		preflight__code=$?
	fi
	[ -z "$preflight__timer" ] || kill "$preflight__timer" 2>/dev/null
	case $preflight__code in
	0 | 2 | 3 | 4) exit "$preflight__code" ;;
	esac
	echo "preflight: interrupted: the checks that have not finished are Unknown" >&2
	exit 4
}

# preflight__usage NAME FUNCTION ... prints the usage and ends the process.
preflight__usage() {
	preflight__names=
	while [ $# -gt 0 ]; do
		preflight__names="$preflight__names  $1$preflight__newline"
		shift
		[ $# -eq 0 ] || shift
	done
	printf '%s\n' "usage: ${0##*/} [--help]

Reports whether the cluster can be updated safely. Read-only.
Without --help it runs these checks:

$preflight__names
Exit codes: 0 no check failed or was inconclusive, 2 invalid usage, 3 a check
failed, 4 a check was inconclusive.

In a Job of \"oc preflight run\" the runner sets PREFLIGHT_CURRENT_VERSION,
PREFLIGHT_TARGET_VERSION, PREFLIGHT_TARGET_IMAGE, PREFLIGHT_RUN_ID,
PREFLIGHT_DEADLINE and PREFLIGHT_RESULT_BYTES."
	exit 0
}

# preflight__run_checks NAME FUNCTION ... runs the checks. Before each check it
# writes the result so far to the termination log.
preflight__run_checks() {
	while [ $# -gt 0 ]; do
		preflight__report running "$@"
		preflight__name=$1
		preflight__statements=$({
			set -e
			"$2"
		} 3>&1 >&2)
		preflight__add_finding "$1" $? "$preflight__statements"
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

# preflight__kill_after SECONDS PROCESS terminates the process after this time.
preflight__kill_after() {
	preflight__sleep=
	trap '[ -z "$preflight__sleep" ] || kill "$preflight__sleep"; exit 0' TERM
	sleep "$1" &
	preflight__sleep=$!
	wait "$preflight__sleep"
	kill "$2"
}

# preflight__validate NAME FUNCTION ... prints the first violation.
preflight__validate() (
	LC_ALL=C
	preflight__run_id "${PREFLIGHT_RUN_ID:-}" || { echo "PREFLIGHT_RUN_ID: want at most 64 letters, digits, dots, dashes and underscores" && exit; }
	case $preflight__budget in
	'' | *[!0-9]* | ????????*) echo "PREFLIGHT_RESULT_BYTES: want a number of at least 512" && exit ;;
	esac
	[ "$preflight__budget" -ge 512 ] || { echo "PREFLIGHT_RESULT_BYTES: want a number of at least 512" && exit; }
	[ $# -gt 0 ] || echo "no checks: call preflight_main with at least one"
	seen=' '
	while [ $# -gt 0 ]; do
		preflight__camel_case "$1" || { echo "check name \"$1\" is not CamelCase of at most 63 letters and digits" && exit; }
		case $seen in
		*" $1 "*) echo "duplicate check name \"$1\"" && exit ;;
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

# preflight__time_left prints the seconds until the checks must end, which is up to
# five seconds before the deadline; nothing without a deadline; "invalid" for a
# malformed deadline.
preflight__time_left() (
	LC_ALL=C
	digits='[0-9][0-9]'
	# shellcheck disable=SC2254 # The variables contain patterns.
	case ${PREFLIGHT_DEADLINE:-} in
	'') exit ;;
	$digits$digits-$digits-${digits}T$digits:$digits:${digits}Z | $digits$digits-$digits-${digits}T$digits:$digits:$digits.*Z) ;;
	*) echo invalid && exit ;;
	esac
	IFS=-T:.Z
	set -f
	# shellcheck disable=SC2086 # Splitting is intended.
	set -- $PREFLIGHT_DEADLINE
	# Days of the civil calendar, with years that begin in March.
	year=$1 month=${2#0} day=${3#0}
	[ "$month" -gt 2 ] || { year=$((year - 1)) && month=$((month + 12)); }
	days=$((365 * year + year / 4 - year / 100 + year / 400 + (153 * (month - 3) + 2) / 5 + day - 719469))
	left=$((days * 86400 + ${4#0} * 3600 + ${5#0} * 60 + ${6#0} - $(date +%s)))
	margin=$((left / 10))
	[ "$margin" -lt 5 ] || margin=5
	echo "$((left - margin))"
)

# preflight__emit OUTCOME MESSAGE REMEDY REASON writes one statement to the process
# that collects them, so that a report from a pipeline counts too.
preflight__emit() (
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

# preflight__cut TEXT LIMIT prints whole characters of the text, at most LIMIT
# bytes. The caller sets LC_ALL=C.
preflight__cut() {
	if [ ${#1} -le "$2" ]; then
		printf %s "$1"
		return
	fi
	# The ellipsis has three bytes, and the last character may be incomplete.
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

# preflight__escape TEXT prints the text as the content of a JSON string. The caller
# sets LC_ALL=C.
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

# preflight__add_finding NAME STATUS STATEMENTS adds the finding of one check.
preflight__add_finding() {
	preflight__outcome='' preflight__reason='' preflight__url='' preflight__objects='' preflight__evidence='' preflight__actions=''
	preflight__message='' preflight__message_short='' preflight__remedy='' preflight__remedy_short=''
	preflight__rest=$3
	while [ -n "$preflight__rest" ]; do
		preflight__line=${preflight__rest%%"$preflight__newline"*}
		preflight__rest=${preflight__rest#"$preflight__line"}
		preflight__rest=${preflight__rest#"$preflight__newline"}
		preflight__add_statement "$preflight__line"
	done
	if [ "$2" -ne 0 ]; then
		preflight__add_error "$1" "the check exited with status $2; see its log"
	elif [ -z "$preflight__outcome" ]; then
		preflight__add_error "$1" "the check reported nothing"
	fi
	case $preflight__outcome in
	Pass | Skipped) preflight__remedy='' preflight__remedy_short='' preflight__actions='' ;;
	esac

	preflight__head="{\"name\":\"$1\",\"outcome\":\"$preflight__outcome\",\"reason\":\"$preflight__reason\""
	preflight__texts=",\"message\":\"$preflight__message\""
	[ -z "$preflight__remedy" ] || preflight__texts="$preflight__texts,\"remediation\":\"$preflight__remedy\""
	[ -z "$preflight__actions" ] || preflight__texts="$preflight__texts,\"actions\":[${preflight__actions#,}]"
	[ -z "$preflight__url" ] || preflight__texts="$preflight__texts,\"url\":\"$preflight__url\""
	[ -z "$preflight__objects" ] || preflight__texts="$preflight__texts,\"objects\":[${preflight__objects#,}]"
	[ -z "$preflight__evidence" ] || preflight__texts="$preflight__texts,\"evidence\":{${preflight__evidence#,}}"
	preflight__full="$preflight__full,$preflight__head$preflight__texts}"
	preflight__short="$preflight__short,$preflight__head,\"message\":\"$preflight__message_short\",\"remediation\":\"$preflight__remedy_short\"}"
	preflight__bare="$preflight__bare,$preflight__head}"
	preflight__count=$((preflight__count + 1))
	preflight__more_severe "$preflight__outcome" "$preflight__worst" && preflight__worst=$preflight__outcome
}

# preflight__add_error NAME MESSAGE adds and prints why the check is inconclusive.
preflight__add_error() {
	printf '%s: Unknown: %s\n' "$1" "$2" >&2
	preflight__add_statement "Unknown${preflight__tab}CheckError$preflight__tab$2$preflight__tab$2$preflight__tab$preflight__tab"
}

# preflight__add_statement STATEMENT adds one statement of the check.
preflight__add_statement() {
	preflight__kind=${1%%"$preflight__tab"*}
	set -- "${1#*"$preflight__tab"}"
	case $preflight__kind in
	object) preflight__objects="$preflight__objects,$1" && return ;;
	action) preflight__actions="$preflight__actions,$1" && return ;;
	evidence) preflight__evidence="$preflight__evidence,$1" && return ;;
	url) preflight__url=$1 && return ;;
	esac

	preflight__statement_reason=${1%%"$preflight__tab"*} && set -- "${1#*"$preflight__tab"}"
	preflight__text=${1%%"$preflight__tab"*} && set -- "${1#*"$preflight__tab"}"
	preflight__text_short=${1%%"$preflight__tab"*} && set -- "${1#*"$preflight__tab"}"
	preflight__advice=${1%%"$preflight__tab"*}
	preflight__advice_short=${1#*"$preflight__tab"}
	[ -z "$preflight__remedy" ] || preflight__advice="${preflight__advice:+\\n}$preflight__advice"
	preflight__remedy="$preflight__remedy$preflight__advice"
	preflight__remedy_short=${preflight__remedy_short:-$preflight__advice_short}

	# The cause comes first. A pass is omitted if there is another outcome.
	if [ -z "$preflight__outcome" ] || { [ "$preflight__outcome" = Pass ] && [ "$preflight__kind" != Pass ]; }; then
		preflight__message=$preflight__text
	elif [ "$preflight__kind" = Pass ] && [ "$preflight__outcome" != Pass ]; then
		return
	elif preflight__more_severe "$preflight__kind" "$preflight__outcome"; then
		preflight__message="$preflight__text; $preflight__message"
	else
		preflight__message="$preflight__message; $preflight__text"
		return
	fi
	preflight__outcome=$preflight__kind
	preflight__reason=$preflight__statement_reason
	preflight__message_short=$preflight__text_short
}

# preflight__more_severe ONE OTHER compares outcomes.
preflight__more_severe() {
	case $1,$2 in
	Fail,Fail | Unknown,Unknown | Warn,Warn | Skipped,Skipped | Pass,*) return 1 ;;
	Fail,* | Unknown,[!F]* | Warn,[SP]* | Skipped,P*) return 0 ;;
	esac
	return 1
}

# preflight__reject CODE REASON CAUSE ends the process without running a check.
preflight__reject() {
	echo "preflight: $3" >&2
	preflight__budget=4096
	preflight__name=Preflight
	preflight__run_id "${PREFLIGHT_RUN_ID:-}" || PREFLIGHT_RUN_ID=
	preflight__add_finding Preflight 0 "$(preflight_unknown "no check was run: $3" "Fix the program or its Job manifest." "$2" 3>&1 2>/dev/null)"
	preflight__report final
	exit "$1"
}

# preflight__report STATE [NAME FUNCTION ...] writes the result so far, with the
# checks that have not finished, to the termination log. A final result that does
# not fit there, or cannot be written there, also goes to the log in full.
preflight__report() {
	preflight__state=$1
	shift
	preflight__pending_full='' preflight__pending_bare=''
	preflight__pending_count=0
	while [ $# -gt 0 ]; do
		preflight__head="{\"name\":\"$1\",\"outcome\":\"Unknown\",\"reason\":\"NotFinished\""
		if [ "$preflight__pending_count" -eq 0 ]; then
			preflight__pending_full=",$preflight__head,\"message\":\"$1 was running when the process ended\"}"
		else
			preflight__pending_full="$preflight__pending_full,$preflight__head,\"message\":\"$1 had not started when the process ended\"}"
		fi
		preflight__pending_bare="$preflight__pending_bare,$preflight__head}"
		preflight__pending_count=$((preflight__pending_count + 1))
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

# preflight__fit prints the first of four versions of the frame that fits.
preflight__fit() (
	LC_ALL=C
	[ "$preflight__budget" -le 4096 ] || preflight__budget=4096
	short='"truncated":true,'
	worst=$preflight__worst
	[ "$preflight__pending_count" -eq 0 ] || [ "$worst" = Fail ] || worst=Unknown
	total=$((preflight__count + preflight__pending_count))
	for document in \
		"$(preflight__document "$preflight__full$preflight__pending_full" '')" \
		"$(preflight__document "$preflight__short$preflight__pending_full" "$short")" \
		"$(preflight__document "$preflight__bare$preflight__pending_bare" "$short")" \
		"$(preflight__document ",{\"name\":\"Preflight\",\"outcome\":\"$worst\",\"reason\":\"ResultTooLong\",\"message\":\"$total checks; their names are in the log\"}" "$short")"; do
		# The head of a frame and its newline have at most 33 bytes.
		[ $((${#document} + 33)) -gt "$preflight__budget" ] || break
	done
	preflight__frame json "$document"
)

# preflight__document FINDINGS TRUNCATED prints the document.
preflight__document() {
	run=
	[ -z "${PREFLIGHT_RUN_ID:-}" ] || run="\"runID\":\"$PREFLIGHT_RUN_ID\","
	printf '{"state":"%s",%s%s"findings":[%s]}' "$preflight__state" "$run" "$2" "${1#,}"
}

# preflight__frame ENCODING PAYLOAD prints a frame without its newline.
preflight__frame() {
	printf 'preflight/1 %s %s %s' "$1" "$(printf %s "$2" | preflight__checksum)" "$2"
}

# preflight__checksum prints the length and the CRC-32 of its input. It processes
# four bits at a time with a table for the polynomial of IEEE 802.3.
preflight__checksum() (
	IFS=' '
	# shellcheck disable=SC2034 # The names are composed below.
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

# preflight__overwrite LINE overwrites the previous line and never empties the file.
# Spaces after a frame are ignored.
preflight__overwrite() {
	preflight__length=$(LC_ALL=C && echo ${#1})
	if [ "$preflight__length" -lt "$preflight__longest" ]; then
		printf "%s%$((preflight__longest - preflight__length))s\n" "$1" '' 1<>"$preflight__log"
		return
	fi
	preflight__longest=$preflight__length
	printf '%s\n' "$1" 1<>"$preflight__log"
}

# preflight__print DOCUMENT writes the frame to the log, in parts if it is long.
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
