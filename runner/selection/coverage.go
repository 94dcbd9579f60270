package selection

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/openshift/update-preflight/collector/gate/removedapi"
	"github.com/openshift/update-preflight/collector/hosted"
	"github.com/openshift/update-preflight/collector/input"
	"github.com/openshift/update-preflight/collector/scene"
	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/runner/image"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/rehearsal"
	"github.com/openshift/update-preflight/runner/site"
)

// Coverage is what a run covers. Runs of one release that differ in it are different runs.
// Defaults are empty, but for Images, so that records of other versions compare.
type Coverage struct {
	Only   []string `json:"only,omitempty"`
	Skip   []string `json:"skip,omitempty"`
	NoJobs bool     `json:"noJobs,omitempty"`
	// Site has the pull specs and digests of the checks of the site.
	Site              []string `json:"site,omitempty"`
	Images            string   `json:"images"`
	Rehearsal         string   `json:"rehearsal,omitempty"`
	IgnoredAlerts     []string `json:"ignoredAlerts,omitempty"`
	IgnoredNamespaces []string `json:"ignoredNamespaces,omitempty"`
	Fixed             string   `json:"fixed,omitempty"`
	// Keyrings, Stores, Monitoring and Dependencies identify where keys, signatures, alerts and URLs outside
	// of the cluster come from; empty for those of the cluster. What they identify is not recorded.
	Keyrings     string   `json:"keyrings,omitempty"`
	Stores       string   `json:"stores,omitempty"`
	Repositories []string `json:"repositories,omitempty"`
	Monitoring   string   `json:"monitoring,omitempty"`
	Dependencies string   `json:"dependencies,omitempty"`
	// HostedCluster is the hosted cluster that its management cluster has under this name, NAMESPACE/NAME,
	// and NodePools are its pools that are to be updated as well.
	HostedCluster string   `json:"hostedCluster,omitempty"`
	NodePools     []string `json:"nodePools,omitempty"`
	// Path is set for a later update of a path: the releases before the target.
	Path []Release `json:"path,omitempty"`
	// Graph identifies where the risks of a later update are read from; empty for the update service of the cluster.
	Graph string `json:"graph,omitempty"`
}

// Release is a release of a path in a record.
type Release struct {
	Version string `json:"version"`
	Image   string `json:"image"`
}

// String is equal for runs that cover the same.
func (c Coverage) String() string {
	text, err := json.Marshal(c)
	if err != nil {
		return err.Error() // lists of strings always encode
	}
	return string(text)
}

// Recorded is the coverage of a recorded run.
func Recorded(run record.Record) (Coverage, error) {
	var covered Coverage
	if err := json.Unmarshal([]byte(run.Selection), &covered); err != nil {
		return Coverage{}, fmt.Errorf("the record of run %s does not have its selection: %w", run.ID, err)
	}
	return covered, nil
}

// Selection is the selection of a recorded run, whose record has the checks of the site.
func (c Coverage) Selection(run record.Record) (Selection, error) {
	sources, err := site.Restore(c.Site, run.Attachment)
	if err != nil {
		return Selection{}, fmt.Errorf("the record of run %s does not have the checks of the site: %w", run.ID, err)
	}
	return Selection{Only: c.Only, Skip: c.Skip, NoJobs: c.NoJobs, Images: image.Mode(c.Images), Rehearsal: rehearsal.Mode(c.Rehearsal), Site: sources}, nil
}

// Judging is a judgement with what a recorded run covers of it. An *input.Error is about a hosted
// cluster that the run covers and that the settings do not have.
func (c Coverage) Judging(settings scene.Settings, run record.Record) (scene.Judgement, error) {
	if name, pools := settings.Estate.Selected(); name != c.HostedCluster || !slices.Equal(pools, c.NodePools) {
		return scene.Judgement{}, c.otherCluster(run)
	}
	judgement := settings.Judgement
	judgement.IgnoredAlerts, judgement.IgnoredNamespaces = c.IgnoredAlerts, c.IgnoredNamespaces
	var err error
	if judgement.Fixed, err = removedapi.ParseFixTime(c.Fixed); err != nil && c.Fixed != "" {
		return scene.Judgement{}, fmt.Errorf("the record of run %s has a time of the fix that cannot be parsed: %w", run.ID, err)
	}
	return judgement, nil
}

// Confirm is an *input.Error for an estate of another hosted cluster than that of a recorded run, which has
// objects in the management cluster. A run that judged its cluster by itself has none.
func (c Coverage) Confirm(estate hosted.Estate, run record.Record) error {
	if name, _ := estate.Selected(); name == c.HostedCluster || c.HostedCluster == "" {
		return nil
	}
	return Coverage{HostedCluster: c.HostedCluster}.otherCluster(run)
}

// ConfirmOrigin is an *input.Error for a coverage whose keys, signatures, alerts or URLs come from elsewhere than
// those of a recorded run: they are not recorded, and what was found by others would be mixed with them.
func (c Coverage) ConfirmOrigin(wanted Coverage, run record.Record) error {
	var flags []string
	differs := func(flag string, equal bool) {
		if !equal {
			flags = append(flags, flag)
		}
	}
	differs("--keyring", c.Keyrings == wanted.Keyrings)
	differs("--signature-store", c.Stores == wanted.Stores)
	differs("--repository", slices.Equal(c.Repositories, wanted.Repositories))
	differs("--prometheus", c.Monitoring == wanted.Monitoring)
	differs("--dependency", c.Dependencies == wanted.Dependencies)
	if len(flags) == 0 {
		return nil
	}
	return input.Errorf("run %s was begun with other values of %s: pass those with which it was begun", run.ID, strings.Join(flags, ", "))
}

// OtherMonitoring reports whether the alerts and metrics of a recorded run came from another monitoring than this
// identity, which is empty for that of the cluster. It is false for a record that states none.
func OtherMonitoring(run record.Record, identity string) bool {
	covered, err := Recorded(run)
	return err == nil && run.Verified() == nil && covered.Monitoring != identity
}

// otherCluster is the error for settings of another cluster than the run covers: half of its findings
// could not be made again.
func (c Coverage) otherCluster(run record.Record) error {
	if c.HostedCluster == "" {
		return input.Errorf("run %s judged this cluster by itself: leave out --hosted-cluster, with the kubeconfig of the cluster", run.ID)
	}
	flags := []string{"--hosted-cluster " + c.HostedCluster}
	for _, pool := range c.NodePools {
		flags = append(flags, "--nodepool "+pool)
	}
	return input.Errorf("run %s judged a hosted cluster: add %s, with the kubeconfig of its management cluster", run.ID, words.Printable(strings.Join(flags, " ")))
}

// Attachment has the directories of the checks of the site, for the record.
func (s Selection) Attachment() []byte {
	archive, err := site.Archive(s.Site)
	if err != nil {
		return nil // Validate reports it
	}
	return archive
}

// Narrowed states what a selection and a judgement leave out, for readers of the verdict.
func Narrowed(s Selection, judgement scene.Judgement) []string {
	var all []string
	add := func(format string, names []string) {
		for _, name := range names {
			all = append(all, words.Line(fmt.Sprintf(format, name), maxNarrowed))
		}
	}
	if s.NoJobs {
		add("%s", []string{"all checks of the release"})
	}
	add("checks other than %s", s.Only)
	add("check %s", s.Skip)
	add("alert %s", judgement.IgnoredAlerts)
	add("alerts in namespace %s", judgement.IgnoredNamespaces)
	if stated := judgement.Fixed.String(); stated != "" {
		add("clients of removed APIs until %s", []string{stated})
	}
	all = slices.Compact(slices.Sorted(slices.Values(all)))
	if len(all) > record.MaxNarrowed {
		rest := len(all) - record.MaxNarrowed + 1
		all = append(all[:record.MaxNarrowed-1], fmt.Sprintf("%d others", rest))
	}
	return all
}

// maxNarrowed bounds each text of Narrowed, in bytes.
const maxNarrowed = 256
