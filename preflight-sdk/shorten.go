package preflight

import (
	"fmt"
	"slices"
	"unicode/utf8"
)

// shortenings returns the steps that shorten a document. Each step is applied to
// the result of the previous one. No step changes an outcome.
func shortenings() []func(document) document {
	return []func(document) document{
		each(func(f *documentFinding) {
			if severity(f.Outcome) <= severity(Skipped) {
				f.Evidence = nil
			}
		}),
		each(func(f *documentFinding) { f.Evidence, f.Objects = nil, nil }),
		cutAt(512),
		cutAt(256),
		cutAt(128),
		cutAt(64),
		each(func(f *documentFinding) { *f = documentFinding{Name: f.Name, Outcome: f.Outcome, Reason: f.Reason} }),
		summarize,
	}
}

// each returns a step that applies change to a copy of every finding.
func each(change func(*documentFinding)) func(document) document {
	return func(d document) document {
		findings := make([]documentFinding, len(d.Findings))
		for i, f := range d.Findings {
			change(&f)
			findings[i] = f
		}
		d.Findings = findings
		return d
	}
}

// cutAt returns a step that keeps the first limit bytes of the texts. A longer
// URL or command is removed, because a truncated one is useless.
func cutAt(limit int) func(document) document {
	return each(func(f *documentFinding) {
		f.Message = cut(f.Message, limit)
		f.Remediation = cut(f.Remediation, limit)
		f.Actions = slices.DeleteFunc(slices.Clone(f.Actions), func(action Action) bool { return len(action.Command) > limit })
		if len(f.URL) > limit {
			f.URL = ""
		}
	})
}

// cut keeps whole characters of the text, at most limit bytes including the
// ellipsis.
func cut(text string, limit int) string {
	const ellipsis = "…"
	if len(text) <= limit {
		return text
	}
	end := limit - len(ellipsis)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + ellipsis
}

// summarize replaces all findings by one with the worst outcome.
func summarize(d document) document {
	count := map[Outcome]int{}
	for _, f := range d.Findings {
		count[f.Outcome]++
	}
	d.Findings = []documentFinding{{
		Name:    programFinding,
		Outcome: worst(d.result().Findings),
		Reason:  "ResultTooLong",
		Message: fmt.Sprintf("%d checks: %d Fail, %d Unknown, %d Warn, %d Skipped, %d Pass; their names are in the log",
			len(d.Findings), count[Fail], count[Unknown], count[Warn], count[Skipped], count[Pass]),
	}}
	return d
}
