package documents_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	configlisters "github.com/openshift/client-go/config/listers/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/openshift/update-preflight/collector/ownsignal"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/runner/record"
	preflight "github.com/openshift/update-preflight/runner/trigger/cvo"
	"github.com/openshift/update-preflight/runner/trigger/published"
	"github.com/openshift/update-preflight/test/documents"
	"github.com/openshift/update-preflight/test/documents/precondition"
)

// Operator has the fields of CVO's that the adapter's README uses.
type Operator struct {
	cvLister              configlisters.ClusterVersionLister
	cmConfigManagedLister corelisters.ConfigMapNamespaceLister
	preflights            *preflight.Verdicts
}

// initialize is what New of CVO does.
func (optr *Operator) initialize(cmConfigManagedInformer coreinformers.ConfigMapInformer, riskSourceCallback func()) (*Operator, error) {
	optr.preflights = preflight.New(optr.cvLister, optr.cmConfigManagedLister, apierrors.IsNotFound, riskSourceCallback)
	if _, err := cmConfigManagedInformer.Informer().AddEventHandler(optr.preflights); err != nil {
		return nil, err
	}
	return optr, nil
}

// check is CVO's interface precondition.Precondition, and riskSource its risk.Source.
type (
	check interface {
		Name() string
		Run(ctx context.Context, release precondition.ReleaseContext) error
	}
	riskSource interface {
		Name() string
		Risks(ctx context.Context, versions []string) ([]configv1.ConditionalUpdateRisk, map[string][]string, error)
	}
)

func (optr *Operator) preconditions() []check {
	return []check{
		&preflight.Gate[precondition.ReleaseContext]{
			Version: func(r precondition.ReleaseContext) string { return r.DesiredVersion },
			Refuse: func(p preflight.Problem) error {
				return &precondition.Error{Name: "Preflight", Reason: p.Reason, Message: p.Message, Nested: p.Nested, NonBlockingWarning: p.Warning}
			},
			Judge: optr.preflights.Selected,
		},
	}
}

func (optr *Operator) sources() []riskSource {
	return []riskSource{
		&preflight.Source[configv1.ConditionalUpdateRisk]{
			New: func(name, reason, message string, since time.Time) configv1.ConditionalUpdateRisk {
				return configv1.ConditionalUpdateRisk{
					Name: name, Message: message, URL: "https://github.com/openshift/update-preflight",
					MatchingRules: []configv1.ClusterCondition{{Type: "Always"}},
					Conditions: []metav1.Condition{{
						Type: "Applies", Status: metav1.ConditionTrue, Reason: reason, Message: message,
						LastTransitionTime: metav1.NewTime(since),
					}},
				}
			},
			Judge: optr.preflights.Offered,
		},
	}
}

// TestAdapter runs what the README of the adapter shows, in a cluster in which the risk of
// an update has made it conditional: nothing before the preflight is installed, then each
// target has the verdict that is published for it, and nothing after the uninstallation.
func TestAdapter(t *testing.T) {
	t.Parallel()
	release := func(version, digit string) configv1.Release {
		return configv1.Release{Version: version, Image: "quay.io/release@sha256:" + strings.Repeat(digit, 64)}
	}
	ready, blocked, missing := release("4.19.1", "1"), release("4.19.2", "2"), release("4.19.3", "3")
	version := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}, Status: configv1.ClusterVersionStatus{
		Desired: release("4.18.9", "9"), AvailableUpdates: []configv1.Release{ready},
		ConditionalUpdates: []configv1.ConditionalUpdate{{Release: blocked}, {Release: missing}},
	}}
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	if err := indexer.Add(version); err != nil {
		t.Fatal(err)
	}
	client := fake.NewClientset()
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(preflight.Namespace))
	configMaps := factory.Core().V1().ConfigMaps()
	changed := make(chan struct{}, 10)
	optr := &Operator{
		cvLister:              configlisters.NewClusterVersionLister(indexer),
		cmConfigManagedLister: configMaps.Lister().ConfigMaps(preflight.Namespace),
	}
	if _, err := optr.initialize(configMaps, func() { changed <- struct{}{} }); err != nil {
		t.Fatal(err)
	}
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())

	optr.expect(t, "not installed", version, []string{ready.Version, blocked.Version, missing.Version}, nil)
	if _, err := published.Apply(t.Context(), client, []record.Record{recorded(ready, "Ready"), recorded(blocked, "Blocked")}, "",
		time.Now()); err != nil {
		t.Fatal(err)
	}
	<-changed
	optr.expect(t, "installed", version, []string{ready.Version},
		[]string{"Preflight-4.19.2 PreflightBlocked", "Preflight-4.19.3 PreflightMissing"})
	if _, err := published.Remove(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	<-changed // it is marked
	<-changed // and deleted
	optr.expect(t, "uninstalled", version, []string{ready.Version, blocked.Version, missing.Version}, nil)
}

// expect compares the versions to which the gate allows an update, and the risks.
func (optr *Operator) expect(t *testing.T, when string, version *configv1.ClusterVersion, allowed, want []string) {
	t.Helper()
	offered := []configv1.Release{
		version.Status.AvailableUpdates[0], version.Status.ConditionalUpdates[0].Release,
		version.Status.ConditionalUpdates[1].Release,
	}
	risks, _, err := optr.sources()[0].Risks(t.Context(), []string{offered[0].Version, offered[1].Version, offered[2].Version})
	var got []string
	for i, risk := range risks {
		if version := strings.TrimPrefix(risk.Name, ownsignal.RiskPrefix); !ownsignal.Risk(risks[i], version) {
			t.Errorf("%s: the checks do not recognize the risk as the preflight's own: %+v", when, risk)
		}
		got = append(got, risk.Name+" "+risk.Conditions[0].Reason)
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%s: the risks are %q (%v), want %q", when, got, err, want)
	}
	for _, target := range offered {
		version.Spec.DesiredUpdate = &configv1.Update{Version: target.Version}
		err := optr.preconditions()[0].Run(t.Context(), precondition.ReleaseContext{DesiredVersion: target.Version})
		if (err == nil) != slices.Contains(allowed, target.Version) {
			t.Errorf("%s: the gate of %s returns %v", when, target.Version, err)
		}
	}
}

// recorded is the record of a run of the release.
func recorded(release configv1.Release, decision string) record.Record {
	target := update.Release{Version: release.Version, Image: release.Image}
	return record.Record{
		Intent: record.Intent{Target: target}, Phase: record.Complete, Authentication: record.Authentication{State: record.Authentic},
		VerdictFile: fmt.Sprintf(
			`{"digest":%q,"version":%q,"from":"4.18.9","phase":"Complete","decision":%q,"completionTime":%q,"validUntil":"2999-01-01T00:00:00Z"}`,
			target.Digest(), release.Version, decision, time.Now().UTC().Format(time.RFC3339)),
	}
}

// TestRunbooks fails for an alert whose risk the checks do not recognize as the preflight's own: CVO
// copies the URL of its runbook.
func TestRunbooks(t *testing.T) {
	t.Parallel()
	rules, err := documents.Read("../..", "runner/trigger/guard/alert.yaml")
	if err != nil {
		t.Fatal(err)
	}
	alerts := strings.Count(rules, "- alert: "+ownsignal.AlertPrefix)
	if with := strings.Count(rules, "runbook_url: "+ownsignal.URL+"\n"); alerts == 0 || with != alerts {
		t.Errorf("%d of %d alerts have the runbook %s", with, alerts, ownsignal.URL)
	}
}

// TestAdapterIsDocumented fails for a block of the README that is not compiled here.
func TestAdapterIsDocumented(t *testing.T) {
	t.Parallel()
	trimmed := func(text string) string {
		lines := strings.Split(text, "\n")
		for i := range lines {
			lines[i] = strings.Join(strings.Fields(lines[i]), " ")
		}
		return strings.Join(lines, "\n")
	}
	source, err := os.ReadFile("adapter_test.go")
	if err != nil {
		t.Fatal(err)
	}
	text, err := documents.Read("../..", "runner/trigger/cvo/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range documents.Blocks(text) {
		if block.Language == "go" && !strings.Contains(trimmed(string(source)), trimmed(block.Text)) {
			t.Errorf("section %q: this is not compiled:\n%s", block.Section, block.Text)
		}
	}
}
