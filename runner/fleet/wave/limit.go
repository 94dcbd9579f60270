package wave

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Limit is a number or a percentage of clusters, as maxFailures of a rollout strategy. Its zero value is none.
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

// Of is the limit for that many clusters, as Open Cluster Management calculates it
// (calculateRolloutSize in pkg/apis/cluster/v1alpha1/rollout.go of sdk-go): a percentage is rounded up,
// and a number that exceeds the clusters counts as none.
func (l Limit) Of(clusters int) int {
	const whole = 100
	switch {
	case l.percent:
		return (clusters*l.number + whole - 1) / whole
	case l.exceeds(clusters):
		return 0
	}
	return l.number
}

// exceeds reports whether the limit is a number of more clusters than there are.
func (l Limit) exceeds(clusters int) bool { return !l.percent && l.number > clusters }
