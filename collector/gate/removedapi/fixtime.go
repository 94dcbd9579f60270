package removedapi

import (
	"fmt"
	"time"

	"github.com/openshift/update-preflight/collector/words"
)

// FixTime is when the clients of removed APIs were fixed, as an administrator states it:
// a time, or a duration before the run. The zero value states nothing.
type FixTime struct {
	at  time.Time
	ago time.Duration
}

// ParseFixTime parses a time of RFC 3339, such as 2026-11-22T14:20:00Z, or a positive duration, such as 3h.
func ParseFixTime(text string) (FixTime, error) {
	if ago, err := time.ParseDuration(text); err == nil && ago > 0 {
		return FixTime{ago: ago}, nil
	}
	parsed, err := time.Parse(time.RFC3339, text)
	at := parsed.UTC()
	if err != nil || at.Year() < 1970 || at.Year() > 9999 {
		return FixTime{}, fmt.Errorf("%q is neither a time like 2026-11-22T14:20:00Z nor a positive duration like 3h", words.Line(text, 64))
	}
	return FixTime{at: at}, nil
}

// At is the stated time, for a run that starts now; zero where none is stated. A time after now is an error.
func (f FixTime) At(now time.Time) (time.Time, error) {
	if f.ago > 0 {
		return now.UTC().Add(-f.ago), nil
	}
	if f.at.After(now) {
		return time.Time{}, fmt.Errorf("the stated time of the fix, %s, is after the cluster's time, %s", words.Time(f.at), words.Time(now))
	}
	return f.at, nil
}

// String is the text that ParseFixTime parses, and empty where nothing is stated.
func (f FixTime) String() string {
	if f.ago > 0 {
		return f.ago.String()
	}
	if f.at.IsZero() {
		return ""
	}
	return f.at.Format(time.RFC3339Nano)
}
