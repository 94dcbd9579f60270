package faults_test

import (
	"fmt"
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
}

// row is one fault.
type row struct {
	fault, verdict, took string
	tried, survived      int
}

// tried enters a case of a fault when it is over. took says what it took; of a
// fault with several cases it is that of the last.
func (tab *table) enter(t *testing.T, fault string, got answer, took string) {
	t.Helper()
	tab.mutex.Lock()
	defer tab.mutex.Unlock()
	entry := tab.row(fault)
	entry.tried++
	entry.took = took
	if !t.Failed() {
		entry.survived++
	}
	if entry.verdict == "" || t.Failed() {
		entry.verdict = got.Decision
	}
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
		fmt.Fprintf(w, "%s\t%s\t%d of %d\t%s\n", entry.fault, entry.verdict, entry.survived, entry.tried, entry.took)
		tried, survived = tried+entry.tried, survived+entry.survived
	}
	fmt.Fprintf(w, "all\t\t%d of %d\t\n", survived, tried)
	_ = w.Flush() // into memory
	return text.String()
}

// since rounds to what may be compared.
func since(start time.Time) string {
	return time.Since(start).Round(100 * time.Millisecond).String()
}
