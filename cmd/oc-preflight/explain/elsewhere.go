package explain

import (
	_ "embed"
	"strings"
)

// table has the reasons that are declared by no package, since they are of no finding of a cluster.
//
//go:embed elsewhere.txt
var table string

// elsewhere are the entries of the table: below the line with a package, a line for each of its reasons.
func elsewhere() []Entry {
	var entries []Entry
	of := ""
	for line := range strings.Lines(table) {
		line = strings.TrimSpace(line)
		columns := strings.Split(line, "|")
		switch {
		case line == "" || line[0] == '#':
		case len(columns) == 1:
			of = line
		default:
			for i := range columns {
				columns[i] = strings.TrimSpace(columns[i])
			}
			entries = append(entries, Entry{Kind: KindReason, Name: columns[0], Package: of, Meaning: columns[1], Cause: columns[2], Remedy: columns[3]})
		}
	}
	return entries
}
