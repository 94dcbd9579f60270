package removedapi

import (
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

const (
	day = 24 * time.Hour
	// everyValue is the bit by which the parser marks a field that is "*" or "?".
	everyValue = 1 << 63
)

// cronPeriod is the longest time between two scheduled times of a CronJob that runs on
// every day, at most 24 hours. It is unknown for other schedules, and for those with a time
// zone in the text, of which the parser panics where nothing follows it.
func cronPeriod(schedule string) (time.Duration, bool) {
	if strings.Contains(schedule, "TZ=") {
		return 0, false
	}
	parsed, err := cron.ParseStandard(schedule)
	if err != nil {
		return 0, false
	}
	switch parsed := parsed.(type) {
	case cron.ConstantDelaySchedule: // the parser makes one second of a shorter or a negative delay
		if parsed.Delay > time.Second && parsed.Delay <= day {
			return parsed.Delay, true
		}
	case *cron.SpecSchedule:
		daily := parsed.Dom&parsed.Month&parsed.Dow&everyValue != 0
		named := strings.HasPrefix(schedule, "@") && schedule != "@hourly"
		if daily && !named && parsed.Minute != 0 && parsed.Hour != 0 {
			return longestGap(parsed), true
		}
	}
	return 0, false
}

// longestGap is the longest time between two scheduled times of a day and the next.
func longestGap(schedule *cron.SpecSchedule) time.Duration {
	first := schedule.Next(time.Time{})
	longest := time.Duration(0)
	for last := first; last.Before(first.Add(day)); {
		next := schedule.Next(last)
		longest, last = max(longest, next.Sub(last)), next
	}
	return longest
}
