package wave

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Limit is a number or a percentage of clusters, as maxFailures of a rollout strategy. Its zero
// value is none.
type Limit struct {
	number  int
	percent bool
}

// ParseLimit reads a limit, such as "3" or "5%".
func ParseLimit(text string) (Limit, error) {
	// The pattern of maxFailures in the API.
	if !regexp.MustCompile(`^((100|[0-9]{1,2})%|[0-9]{1,9})$`).MatchString(text) {
		return Limit{}, fmt.Errorf("%q is neither a number of clusters nor a percentage up to 100%%", text)
	}
	digits, percent := strings.CutSuffix(text, "%")
	number, err := strconv.Atoi(digits)
	return Limit{number, percent}, err
}

// String is the limit as [ParseLimit] reads it.
func (l Limit) String() string {
	if l.percent {
		return strconv.Itoa(l.number) + "%"
	}
	return strconv.Itoa(l.number)
}

// Of is the limit for that many clusters. A part of a cluster may not fail.
func (l Limit) Of(clusters int) int {
	if l.percent {
		return clusters * l.number / 100
	}
	return l.number
}
