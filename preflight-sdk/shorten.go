package preflight

import (
	"fmt"
	"unicode/utf8"
)

// shortenings are the steps by which a document gets shorter, each on top of
// those before it. None of them changes an outcome.
func shortenings() []func(document) document {
	return []func(document) document{
		each(func(e *documentEntry) {
			if severity(e.Outcome) <= severity(Skipped) {
				e.Evidence = nil
			}
		}),
		each(func(e *documentEntry) { e.Evidence, e.Objects = nil, nil }),
		cutAt(512),
		cutAt(256),
		cutAt(128),
		cutAt(64),
		each(func(e *documentEntry) { *e = documentEntry{Name: e.Name, Outcome: e.Outcome, Reason: e.Reason} }),
		summarize,
	}
}

// each applies one change to a copy of every finding.
func each(change func(*documentEntry)) func(document) document {
	return func(d document) document {
		entries := make([]documentEntry, len(d.Findings))
		for i, e := range d.Findings {
			change(&e)
			entries[i] = e
		}
		d.Findings = entries
		return d
	}
}

// cutAt keeps the first limit bytes of the texts. Half a URL leads nowhere, so
// a long one goes altogether.
func cutAt(limit int) func(document) document {
	return each(func(e *documentEntry) {
		e.Message = cut(e.Message, limit)
		e.Remediation = cut(e.Remediation, limit)
		if len(e.URL) > limit {
			e.URL = ""
		}
	})
}

// cut keeps whole characters, at most limit bytes of them with the sign that
// something is missing.
func cut(text string, limit int) string {
	const sign = "…"
	if len(text) <= limit {
		return text
	}
	end := limit - len(sign)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + sign
}

// summarize puts one finding with the worst outcome in the place of all.
func summarize(d document) document {
	count := map[Outcome]int{}
	for _, e := range d.Findings {
		count[e.Outcome]++
	}
	d.Findings = []documentEntry{{
		Name:    programFinding,
		Outcome: worst(d.result().Findings),
		Reason:  "ResultTooLong",
		Message: fmt.Sprintf("%d checks: %d Fail, %d Unknown, %d Warn, %d Skipped, %d Pass; their names are in the log",
			len(d.Findings), count[Fail], count[Unknown], count[Warn], count[Skipped], count[Pass]),
	}}
	return d
}
