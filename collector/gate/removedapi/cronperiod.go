package removedapi

import (
	"strconv"
	"strings"
	"time"
)

const minutesOfDay = 24 * 60

// cronPeriod is the longest time between two scheduled times of a CronJob that runs on
// every day, at most 24 hours. It is unknown for other schedules, and for those with a time
// zone in the text.
func cronPeriod(schedule string) (time.Duration, bool) {
	if text, ok := strings.CutPrefix(schedule, "@every "); ok {
		period, err := time.ParseDuration(text)
		if err != nil || period <= 0 || period > 24*time.Hour {
			return 0, false
		}
		return period, true
	}
	if schedule == "@hourly" {
		return time.Hour, true
	}
	fields := strings.Fields(schedule)
	if len(fields) != 5 || !everyDay(fields[2:]) {
		return 0, false
	}
	minutes, known := cronValues(fields[0], 60)
	hours, ok := cronValues(fields[1], 24)
	if !known || !ok {
		return 0, false
	}
	return longestGap(minutes, hours), true
}

func everyDay(fields []string) bool {
	for _, field := range fields {
		if field != "*" && field != "?" {
			return false
		}
	}
	return true
}

// longestGap is the longest time between two of these minutes of these hours of a day and
// the next; each has at least one value.
func longestGap(minutes, hours []bool) time.Duration {
	first, last, longest := -1, 0, 0
	for minute := range minutesOfDay {
		if !hours[minute/60] || !minutes[minute%60] {
			continue
		}
		if first < 0 {
			first, last = minute, minute
		}
		longest, last = max(longest, minute-last), minute
	}
	return time.Duration(max(longest, minutesOfDay-last+first)) * time.Minute
}

// cronValues are the values below limit that a field of a schedule lists.
func cronValues(field string, limit int) ([]bool, bool) {
	values := make([]bool, limit)
	for part := range strings.SplitSeq(field, ",") {
		from, to, step, ok := cronRange(part, limit)
		if !ok {
			return nil, false
		}
		for value := from; value <= to; value += step {
			values[value] = true
		}
	}
	return values, true
}

// cronRange parses "*", "a", "a-b", each optionally with "/step".
func cronRange(part string, limit int) (from, to, step int, ok bool) {
	text, divisor, stepped := strings.Cut(part, "/")
	step = 1
	if stepped {
		if step, ok = cronNumber(divisor, limit); !ok || step == 0 {
			return 0, 0, 0, false
		}
	}
	if text == "*" || text == "?" {
		return 0, limit - 1, step, true
	}
	low, high, ranged := strings.Cut(text, "-")
	from, ok = cronNumber(low, limit)
	to = from
	switch {
	case ok && ranged:
		to, ok = cronNumber(high, limit)
	case stepped:
		to = limit - 1
	}
	return from, to, step, ok && from <= to
}

func cronNumber(text string, limit int) (int, bool) {
	number, err := strconv.ParseUint(text, 10, 8)
	return int(number), err == nil && int(number) < limit
}
