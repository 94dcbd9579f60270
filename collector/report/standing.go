package report

// Standing is whether the verdict of a stored report still holds.
type Standing struct {
	// Time is when that was determined, RFC 3339 in UTC, by the cluster's clock where
	// it is known.
	Time string `json:"time"`
	// Holder is the process that holds a run in progress; empty when none does.
	Holder string `json:"holder,omitempty"`
	// Ended lists why the verdict no longer holds; empty while it does.
	Ended []string `json:"ended,omitempty"`
}

// Holds reports whether the verdict of the report is current. That of a new report
// is.
func (r Report) Holds() bool { return r.Standing == nil || len(r.Standing.Ended) == 0 }
