package documents_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	configlisters "github.com/openshift/client-go/config/listers/config/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	preflight "github.com/openshift/update-preflight/runner/trigger/cvo"
	"github.com/openshift/update-preflight/test/documents"
	"github.com/openshift/update-preflight/test/documents/precondition"
)

// Operator has the fields of CVO's that the adapter's README uses.
type Operator struct {
	name       string
	cvLister   configlisters.ClusterVersionLister
	kubeClient kubernetes.Interface
}

// selectedRecords are those of the selected update, which may not be offered.
func (optr *Operator) selectedRecords(ctx context.Context, version string) (preflight.Records, error) {
	config, err := optr.cvLister.Get(optr.name)
	if err != nil || config.Spec.DesiredUpdate == nil {
		return preflight.Records{}, err
	}
	if image := config.Spec.DesiredUpdate.Image; image != "" {
		return optr.preflightRecords(ctx, config.Status.Desired.Version, image)
	}
	return optr.offeredRecords(ctx, version)
}

// offeredRecords are those of an available or a conditional update.
func (optr *Operator) offeredRecords(ctx context.Context, version string) (preflight.Records, error) {
	config, err := optr.cvLister.Get(optr.name)
	if err != nil {
		return preflight.Records{}, err
	}
	offered := slices.Clone(config.Status.AvailableUpdates)
	for _, update := range config.Status.ConditionalUpdates {
		offered = append(offered, update.Release)
	}
	i := slices.IndexFunc(offered, func(release configv1.Release) bool { return release.Version == version })
	if i < 0 {
		return preflight.Records{}, nil
	}
	return optr.preflightRecords(ctx, config.Status.Desired.Version, offered[i].Image)
}

func (optr *Operator) preflightRecords(ctx context.Context, from, image string) (preflight.Records, error) {
	records, err := optr.kubeClient.CoreV1().ConfigMaps(preflight.Namespace).List(ctx, metav1.ListOptions{LabelSelector: preflight.Selector(image)})
	if err != nil {
		return preflight.Records{}, err
	}
	found := preflight.Records{Image: image, From: from}
	for _, record := range records.Items {
		found.Data = append(found.Data, record.Data)
	}
	key, err := optr.kubeClient.CoreV1().Secrets(preflight.Namespace).Get(ctx, preflight.KeySecret, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return found, nil // no run has been recorded
	}
	if err != nil {
		return preflight.Records{}, err
	}
	found.Key = key.Data["key"]
	return found, nil
}

func (optr *Operator) preconditions() []*preflight.Gate[precondition.ReleaseContext] {
	return []*preflight.Gate[precondition.ReleaseContext]{
		{
			Version: func(r precondition.ReleaseContext) string { return r.DesiredVersion },
			Refuse: func(p preflight.Problem) error {
				return &precondition.Error{Name: "Preflight", Reason: p.Reason, Message: p.Message, Nested: p.Nested, NonBlockingWarning: p.Warning}
			},
			Read: optr.selectedRecords,
		},
	}
}

func (optr *Operator) sources() []*preflight.Source[configv1.ConditionalUpdateRisk] {
	return []*preflight.Source[configv1.ConditionalUpdateRisk]{
		{
			New: func(name, reason, message string, since time.Time) configv1.ConditionalUpdateRisk {
				return configv1.ConditionalUpdateRisk{
					Name: name, Message: message, URL: "https://github.com/openshift/update-preflight",
					MatchingRules: []configv1.ClusterCondition{{Type: "Always"}},
					Conditions:    []metav1.Condition{{Type: "Applies", Status: metav1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(since)}},
				}
			},
			Read: optr.offeredRecords,
		},
	}
}

// TestAdapter runs what the README of the adapter shows, in a cluster in which the risk of
// an update has made it conditional: each target has the verdict that is recorded for it.
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
	key := []byte("0123456789abcdef0123456789abcdef")
	optr := &Operator{name: "version", cvLister: configlisters.NewClusterVersionLister(indexer), kubeClient: fake.NewClientset(
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: preflight.Namespace, Name: preflight.KeySecret}, Data: map[string][]byte{"key": key}},
		recorded(ready, "Ready", key), recorded(blocked, "Blocked", key),
	)}
	risks, _, err := optr.sources()[0].Risks(t.Context(), []string{ready.Version, blocked.Version, missing.Version})
	var got []string
	for _, risk := range risks {
		got = append(got, risk.Name+" "+risk.Conditions[0].Reason)
	}
	if want := []string{"Preflight-4.19.2 PreflightBlocked", "Preflight-4.19.3 PreflightMissing"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("the risks are %q (%v), want %q", got, err, want)
	}
	for _, target := range []configv1.Release{ready, blocked} {
		version.Spec.DesiredUpdate = &configv1.Update{Version: target.Version}
		err := optr.preconditions()[0].Run(t.Context(), precondition.ReleaseContext{DesiredVersion: target.Version})
		if (err == nil) != (target.Version == ready.Version) {
			t.Errorf("the gate of %s returns %v", target.Version, err)
		}
	}
}

// recorded is the record of a run of the release.
func recorded(release configv1.Release, decision string, key []byte) *corev1.ConfigMap {
	_, digest, _ := strings.Cut(release.Image, "@")
	text := fmt.Sprintf(`{"digest":%q,"version":%q,"from":"4.18.9","phase":"Complete","decision":%q,"completionTime":%q,"validUntil":"2999-01-01T00:00:00Z"}`,
		digest, release.Version, decision, time.Now().UTC().Format(time.RFC3339))
	sum := func(key []byte, text string) []byte {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(text))
		return mac.Sum(nil)
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: preflight.Namespace, Name: "record-" + release.Version, Labels: map[string]string{
			"preflight.openshift.io/record": "", "preflight.openshift.io/release": digest[len("sha256:"):][:12],
		}},
		Data: map[string]string{"verdict.json": text, "verdict.mac": hex.EncodeToString(sum(sum(key, "preflight.openshift.io/verdict.mac/v1"), text))},
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
