package release

import (
	"strings"

	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/document/findingview"
	"github.com/openshift/update-preflight/collector/document/format"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/report"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/launch/jobplan"
)

// ListedCheck is one check of a Listing.
type ListedCheck struct {
	Name      string `json:"name"`
	Component string `json:"component"`
	// Manifest is the file that has the Job, in the release or in the directory of a site.
	Manifest  string   `json:"manifest"`
	Namespace string   `json:"namespace"`
	Images    []string `json:"images"`
}

func checkOf(check jobplan.Check) ListedCheck {
	entry := ListedCheck{
		Name: check.Name, Component: check.Component, Manifest: check.File,
		Namespace: check.Job.Namespace, Images: []string{},
	}
	for _, container := range check.Job.Spec.Template.Spec.Containers {
		entry.Images = append(entry.Images, container.Image)
	}
	return entry
}

// ListingKind is the kind in the JSON and YAML documents of a list of checks.
const ListingKind = "PreflightChecks"

// Listing is the document of "checks": no check of it was run.
type Listing struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`

	Checks []ListedCheck `json:"checks"`
	// Findings are about the release and its manifests.
	Findings []finding.Finding `json:"findings"`
}

// NewListing is the document about the checks of a release.
func NewListing(checks []jobplan.Check, findings []finding.Finding) Listing {
	document := Listing{APIVersion: report.APIVersion, Kind: ListingKind, Checks: []ListedCheck{}, Findings: findings}
	for _, check := range checks {
		document.Checks = append(document.Checks, checkOf(check))
	}
	return document
}

// Document is the checks as a table, and every finding that is not a pass.
func (l Listing) Document(view document.View) document.Document {
	if view.Full {
		return l.Wide(view)
	}
	return l.document([]string{"Check", "Namespace", "Manifest"}, func(check ListedCheck) []string {
		return []string{check.Name, check.Namespace, check.Manifest}
	})
}

// Wide is the document with all columns.
func (l Listing) Wide(document.View) document.Document {
	return l.document([]string{"Check", "Namespace", "Component", "Manifest", "Images"}, func(check ListedCheck) []string {
		return []string{check.Name, check.Namespace, check.Component, check.Manifest, strings.Join(check.Images, ",")}
	})
}

func (l Listing) document(columns []string, row func(ListedCheck) []string) document.Document {
	table := document.Table{Title: "Checks", Columns: columns, Whole: true}
	for _, check := range l.Checks {
		table.Rows = append(table.Rows, row(check))
	}
	var items document.Items
	for _, f := range l.Findings {
		if f.Outcome != preflight.Pass {
			items.Entries = append(items.Entries, findingview.Item(f))
		}
	}
	return document.Document{Title: "Checks of the release", Source: "The JSON document has all data.", Blocks: []document.Block{table, items}}
}

// Names is check/NAME for every check.
func (l Listing) Names() ([]string, error) {
	var names []string
	for _, check := range l.Checks {
		names = append(names, format.CheckName+"/"+check.Name)
	}
	return names, nil
}
