//go:build faults

package faults_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"
)

// table is what the suite is for: the faults, and what became of each.
type table struct {
	mutex sync.Mutex
	rows  []*row
	// passed are the kill points that a run did not come to.
	passed []string
}

// row is one fault.
type row struct {
	fault, verdict, cost string
	tried, survived      int
	took                 []time.Duration
}

// enter takes note of a case of a fault when it is over, with what it cost
// besides the time since it began. A fault may have several cases.
func (tab *table) enter(t *testing.T, fault string, got answer, began time.Time, cost string) {
	t.Helper()
	tab.mutex.Lock()
	defer tab.mutex.Unlock()
	entry := tab.row(fault)
	entry.tried++
	entry.took, entry.cost = append(entry.took, time.Since(began)), cost
	if !t.Failed() {
		entry.survived++
	}
	if entry.verdict == "" || t.Failed() {
		entry.verdict = got.Decision
	}
}

// pass takes note of a kill point that a run did not come to.
func (tab *table) pass(point killPoint) {
	tab.mutex.Lock()
	defer tab.mutex.Unlock()
	tab.passed = append(tab.passed, fmt.Sprintf("%s %s", point.moment, point.write))
}

func (tab *table) row(fault string) *row {
	for _, known := range tab.rows {
		if known.fault == fault {
			return known
		}
	}
	entry := &row{fault: fault}
	tab.rows = append(tab.rows, entry)
	return entry
}

// String is the table.
func (tab *table) String() string {
	tab.mutex.Lock()
	defer tab.mutex.Unlock()
	var text strings.Builder
	text.WriteString("\n")
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	tried, survived := 0, 0
	fmt.Fprintln(w, "fault\tverdict\tsurvived\twhat it took")
	for _, entry := range tab.rows {
		fmt.Fprintf(w, "%s\t%s\t%d of %d\t%s, %s\n", entry.fault, entry.verdict, entry.survived, entry.tried, spent(entry.took), entry.cost)
		tried, survived = tried+entry.tried, survived+entry.survived
	}
	fmt.Fprintf(w, "all\t\t%d of %d\t\n", survived, tried)
	_ = w.Flush() // into memory
	if len(tab.passed) > 0 {
		fmt.Fprintf(&text, "not counted, since the run was over before that: %s\n", strings.Join(slices.Sorted(slices.Values(tab.passed)), ", "))
	}
	return text.String()
}

// spent is how long the cases took, the median of them and the longest.
func spent(took []time.Duration) string {
	slices.Sort(took)
	longest, median := took[len(took)-1].Round(time.Second/10), took[len(took)/2].Round(time.Second/10)
	if len(took) == 1 {
		return longest.String()
	}
	return fmt.Sprintf("%s (at most %s)", median, longest)
}
