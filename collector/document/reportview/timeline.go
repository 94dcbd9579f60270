package reportview

import (
	"time"

	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/document/findingview"
	"github.com/openshift/update-preflight/collector/document/picture"
	"github.com/openshift/update-preflight/collector/finding"
)

// timeline has the checks of which it is known when they waited or ran; nothing for none.
func timeline(findings []finding.Finding) []document.Block {
	made := picture.Timeline{Title: "Timeline of the checks"}
	drawn := map[finding.Object]bool{}
	for _, f := range findings {
		if f.Job == nil || drawn[finding.Object{Namespace: f.Job.Namespace, Name: f.Job.Name}] {
			continue
		}
		bar := picture.Bar{Name: f.Name, Result: findingview.Label(f), Level: findingview.Mark(f).Level, Waits: waits(f.Job.Waits)}
		start, end, ran := times(f.Job)
		if ran {
			bar.Start, bar.End = start, end
		}
		if !ran && len(bar.Waits) == 0 {
			continue
		}
		drawn[finding.Object{Namespace: f.Job.Namespace, Name: f.Job.Name}] = true // a Job may report several findings
		made.Bars = append(made.Bars, bar)
	}
	if len(made.Bars) == 0 {
		return nil
	}
	return []document.Block{document.Section{Title: made.Title, Blocks: []document.Block{made.Picture()}}}
}

// maxWaits bounds the waits of one check.
const maxWaits = 20

func waits(all []finding.Wait) []picture.Wait {
	var known []picture.Wait
	for _, each := range all[:min(len(all), maxWaits)] {
		if start, end, ok := period(each.StartTime, each.EndTime); ok {
			known = append(known, picture.Wait{Reason: each.Reason, Message: each.Message, Start: start, End: end})
		}
	}
	return known
}

// period parses the start and the end of a period; false if it has none.
func period(from, to string) (start, end time.Time, ok bool) {
	start, err := time.Parse(time.RFC3339, from)
	if err != nil || start.IsZero() {
		return time.Time{}, time.Time{}, false
	}
	end, err = time.Parse(time.RFC3339, to)
	return start, end, err == nil && !end.Before(start)
}

// times are when a Job started and ended; false if unknown.
func times(job *finding.Job) (start, end time.Time, ok bool) {
	if job == nil {
		return time.Time{}, time.Time{}, false
	}
	return period(job.StartTime, job.CompletionTime)
}
