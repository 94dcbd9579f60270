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

// table collects the results of all faults.
type table struct {
	mutex sync.Mutex
	rows  []*row
}

// row is the result of one fault.
type row struct {
	fault, verdict, cost string
	cases, survived      int
	took                 []time.Duration
}

// add records a case of a fault after its end, with its cost besides the time since it
// began. A fault may have several cases.
func (tab *table) add(t *testing.T, fault string, got result, began time.Time, cost string) {
	t.Helper()
	tab.mutex.Lock()
	defer tab.mutex.Unlock()
	entry := tab.row(fault)
	entry.cases++
	entry.took, entry.cost = append(entry.took, time.Since(began)), cost
	if !t.Failed() {
		entry.survived++
	}
	if entry.verdict == "" || t.Failed() {
		entry.verdict = got.Decision
	}
}

func (tab *table) row(fault string) *row {
	for _, r := range tab.rows {
		if r.fault == fault {
			return r
		}
	}
	entry := &row{fault: fault}
	tab.rows = append(tab.rows, entry)
	return entry
}

// String implements fmt.Stringer.
func (tab *table) String() string {
	tab.mutex.Lock()
	defer tab.mutex.Unlock()
	var text strings.Builder
	text.WriteString("\n")
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	cases, survived := 0, 0
	fmt.Fprintln(w, "fault\tverdict\tsurvived\tcost")
	for _, entry := range tab.rows {
		fmt.Fprintf(w, "%s\t%s\t%d of %d\t%s, %s\n", entry.fault, entry.verdict, entry.survived, entry.cases, spent(entry.took), entry.cost)
		cases, survived = cases+entry.cases, survived+entry.survived
	}
	fmt.Fprintf(w, "all\t\t%d of %d\t\n", survived, cases)
	_ = w.Flush() // into memory
	return text.String()
}

// spent returns the median and the longest duration of the cases.
func spent(took []time.Duration) string {
	slices.Sort(took)
	longest, median := took[len(took)-1].Round(time.Second/10), took[len(took)/2].Round(time.Second/10)
	if len(took) == 1 {
		return longest.String()
	}
	return fmt.Sprintf("%s (at most %s)", median, longest)
}
