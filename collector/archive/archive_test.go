package archive_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/archive"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/gap"
)

// Tests of: collector/archive/inventory, collector/archive/layout

const (
	version = "---\napiVersion: config.openshift.io/v1\nitems:\n- apiVersion: config.openshift.io/v1\n  kind: ClusterVersion\n  " +
		"metadata:\n    name: version\n  spec:\n    clusterID: a\nkind: ClusterVersionList\nmetadata:\n  resourceVersion: \"9\"\n"
	empty   = "apiVersion: policy/v1\nitems: []\nkind: PodDisruptionBudgetList\nmetadata:\n  resourceVersion: \"9\"\n"
	budgets = "namespaces/ns/policy/poddisruptionbudgets.yaml"
	budget  = "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata:\n  name: b\n  namespace: ns\n"
)

// must-gather has these files and a ClusterVersion.
func files(more map[string]string) fstest.MapFS {
	all := fstest.MapFS{"cluster-scoped-resources/config.openshift.io/clusterversions.yaml": {Data: []byte(version)}}
	for name, content := range more {
		all[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return all
}

func write(t *testing.T, content fs.FS) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "archive")
	if err := os.CopyFS(dir, content); err != nil {
		t.Fatal(err)
	}
	return dir
}

func open(t *testing.T, paths ...string) (*archive.Archive, *cluster.Cluster) {
	t.Helper()
	opened, err := archive.Open(t.Context(), paths...)
	if err != nil {
		t.Fatal(err)
	}
	reached, err := cluster.Connect(opened.Config(), "test")
	if err != nil {
		t.Fatal(err)
	}
	return opened, reached
}

// result is what a client gets of the PodDisruptionBudgets.
type result struct {
	Names   []string
	Reason  metav1.StatusReason
	Partial bool
}

func list(t *testing.T, c *cluster.Cluster, namespace string) result {
	t.Helper()
	ctx, log := gap.Track(t.Context())
	got, err := c.Kubernetes.PolicyV1().PodDisruptionBudgets(namespace).List(ctx, metav1.ListOptions{})
	of := result{Reason: apierrors.ReasonForError(err), Partial: len(log.All()) > 0}
	if err == nil {
		for _, item := range got.Items {
			of.Names = append(of.Names, item.Name)
		}
	}
	return of
}

func TestCompletePartialAbsent(t *testing.T) {
	const torn = "apiVersion: policy/v1\nitems:\n- kind: PodDisrup"
	for name, tc := range map[string]struct {
		reason    string
		files     map[string]string
		namespace string
		want      result
	}{
		"Complete": {reason: "an empty list means none", files: map[string]string{budgets: empty}, namespace: "ns"},
		"Absent": {
			reason: "no list means that nothing is known", files: map[string]string{budgets: empty}, namespace: "other",
			want: result{Reason: gap.Reason, Partial: true},
		},
		"Cluster": {reason: "the namespaces are never all", files: map[string]string{budgets: empty}, want: result{Partial: true}},
		"Single": {
			reason: "an object of a namespace that was not gathered",
			files:  map[string]string{"namespaces/ns/policy/poddisruptionbudgets/b.yaml": budget}, namespace: "ns",
			want: result{Names: []string{"b"}, Partial: true},
		},
		"Torn": {
			reason: "a torn file is missing", files: map[string]string{budgets: torn}, namespace: "ns",
			want: result{Reason: gap.Reason, Partial: true},
		},
		"Collected": {reason: "the collection states what is complete", files: map[string]string{
			budgets:                     empty,
			"preflight-collection.json": `{"complete":["poddisruptionbudgets.policy"],"objects":{"poddisruptionbudgets.policy":0}}`,
		}},
		"Uncounted": {
			reason: "a collection that does not count the objects proves nothing",
			files:  map[string]string{"preflight-collection.json": `{"complete":["poddisruptionbudgets.policy"]}`},
			want:   result{Reason: gap.Reason, Partial: true},
		},
		"Halved": {
			reason: "objects that the collection counts are not there",
			files: map[string]string{
				"namespaces/ns/policy/poddisruptionbudgets/b.yaml": budget,
				"preflight-collection.json":                        `{"complete":["poddisruptionbudgets.policy"],"objects":{"poddisruptionbudgets.policy":2}}`,
			},
			want: result{Names: []string{"b"}, Partial: true},
		},
		"Unproven": {
			reason: "a list without resourceVersion may be a part",
			files:  map[string]string{budgets: "apiVersion: policy/v1\nitems: []\nkind: PodDisruptionBudgetList\nmetadata: {}\n"}, namespace: "ns",
			want: result{Reason: gap.Reason, Partial: true},
		},
		"Continued": {
			reason: "a list that continues is a part",
			files: map[string]string{budgets: "apiVersion: policy/v1\nitems: []\nkind: PodDisruptionBudgetList\nmetadata:\n  continue: a\n " +
				" resourceVersion: \"9\"\n"}, namespace: "ns", want: result{Reason: gap.Reason, Partial: true},
		},
		"NotServed": {
			reason: "the collection states what was not served",
			files:  map[string]string{"preflight-collection.json": `{"unserved":["poddisruptionbudgets.policy"]}`},
			want:   result{Reason: metav1.StatusReasonNotFound},
		},
		"Duplicates": {
			reason: "the newest of an object counts",
			files: map[string]string{
				budgets: strings.Replace(empty, "[]",
					"\n- apiVersion: policy/v1\n  kind: PodDisruptionBudget\n  metadata:\n    name: b\n    namespace: ns", 1),
				"namespaces/ns/policy/poddisruptionbudgets/b.yaml": budget,
			}, namespace: "ns", want: result{Names: []string{"b"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, reached := open(t, write(t, files(tc.files)))
			if diff := cmp.Diff(tc.want, list(t, reached, tc.namespace)); diff != "" {
				t.Errorf("%s; -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// A version that old clusters have is converted: an empty selector selected no pods in it.
func TestOldVersion(t *testing.T) {
	const old = "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata:\n  name: b\n  namespace: ns\nspec:\n  selector: {}\n"
	_, reached := open(t, write(t, files(map[string]string{"namespaces/ns/policy/poddisruptionbudgets/b.yaml": old})))
	got, err := reached.Kubernetes.PolicyV1().PodDisruptionBudgets("ns").Get(t.Context(), "b", metav1.GetOptions{})
	if err != nil || !cmp.Equal(policyv1.PodDisruptionBudgetSpec{}, got.Spec) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestWrongArchives(t *testing.T) {
	second := strings.Replace(version, "clusterID: a", "clusterID: b", 1)
	both := fstest.MapFS{
		"one/cluster-scoped-resources/config.openshift.io/clusterversions.yaml": {Data: []byte(version)},
		"two/cluster-scoped-resources/config.openshift.io/clusterversions.yaml": {Data: []byte(second)},
	}
	guest := fstest.MapFS{
		"cluster-scoped-resources/config.openshift.io/clusterversions.yaml":                 {Data: []byte(version)},
		"hostedcluster-x/cluster-scoped-resources/config.openshift.io/clusterversions.yaml": {Data: []byte(second)},
	}
	for name, tc := range map[string]struct {
		content fs.FS
		below   string
		err, id string
	}{
		"Nothing":  {content: fstest.MapFS{"a.log": {}}, err: "no cluster was found"},
		"Two":      {content: both, err: "several clusters were found"},
		"OneOfTwo": {content: both, below: "two", id: "b"},
		"Guest":    {content: guest, id: "b"},
		"Torn": {content: files(map[string]string{
			"preflight-collection.json": "{}", "cluster-scoped-resources/config.openshift.io/clusterversions.yaml": version[:60],
		}), err: "clusterversions.yaml cannot be read"},
		"NoVersion": {content: fstest.MapFS{budgets: {Data: []byte(empty)}}, err: "no file contains a ClusterVersion"},
	} {
		t.Run(name, func(t *testing.T) {
			opened, err := archive.Open(t.Context(), filepath.Join(write(t, tc.content), tc.below))
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("got error %v, want %q", err, tc.err)
				}
				return
			}
			if err != nil || opened.About().ClusterID != tc.id {
				t.Errorf("got %v, want cluster %q", err, tc.id)
			}
		})
	}
}

const example = "../../examples/archive"

// TestExample reads the example in each packaging.
func TestExample(t *testing.T) {
	dir := t.TempDir()
	for name, pack := range map[string]func(*testing.T) []byte{"a.tar": tarOf, "b": gzipOf, "c.zip": zipOf} {
		if err := os.WriteFile(filepath.Join(dir, name), pack(t), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{example, dir + "/a.tar", dir + "/b", dir + "/c.zip", dir + "/a.tar/must-gather.local.4242424242424242"} {
		t.Run(filepath.Base(path), func(t *testing.T) {
			opened, reached := open(t, path)
			kubernetes, err := reached.Kubernetes.Discovery().ServerVersion()
			if err != nil || kubernetes.GitVersion != "v1.31.8" {
				t.Errorf("version %v, %v", kubernetes, err)
			}
			now := time.Date(2025, 6, 3, 8, 17, 40, 0, time.UTC)
			if ahead := reached.Now().Sub(now); opened.About().Kind != "must-gather" || ahead < 0 || ahead > time.Hour {
				t.Errorf("about %+v, and the time is %s after the newest of the archive", opened.About(), ahead)
			}
			nodes, err := reached.Kubernetes.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{Limit: 2})
			if err != nil || len(nodes.Items) != 2 || nodes.Continue == "" {
				t.Errorf("the first page has %d nodes, %v", len(nodes.Items), err)
			}
			if _, err := reached.Kubernetes.CoreV1().ConfigMaps("openshift-config").Get(t.Context(), "other",
				metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("an object that a complete list lacks: %v", err)
			}
			if _, err := reached.Kubernetes.CoreV1().Secrets("openshift-config").Get(t.Context(), "pull-secret", metav1.GetOptions{}); !gap.Is(err) {
				t.Errorf("a Secret: %v", err)
			}
			reviewed, err := reached.Kubernetes.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(),
				&authorizationv1.SelfSubjectAccessReview{
					Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
						Verb:     "list",
						Resource: "pods",
					}},
				}, metav1.CreateOptions{})
			if err != nil || !reviewed.Status.Allowed {
				t.Errorf("reading is allowed: %v", err)
			}
			err = reached.Kubernetes.CoreV1().Nodes().Delete(t.Context(), "node-0", metav1.DeleteOptions{})
			if apierrors.ReasonForError(err) != metav1.StatusReasonMethodNotAllowed {
				t.Errorf("an archive can only be read: %v", err)
			}
		})
	}
}

func eachFile(t *testing.T, do func(name string, content []byte) error) {
	t.Helper()
	root := os.DirFS(example)
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(root, name)
		return errors.Join(err, do(name, content))
	})
	if err != nil {
		t.Fatal(err)
	}
}

func tarOf(t *testing.T) []byte {
	t.Helper()
	var packed bytes.Buffer
	into := tar.NewWriter(&packed)
	eachFile(t, func(name string, content []byte) error {
		err := into.WriteHeader(&tar.Header{Name: "./" + name, Size: int64(len(content)), Typeflag: tar.TypeReg, Mode: 0o600})
		_, writeErr := into.Write(content)
		return errors.Join(err, writeErr)
	})
	if err := into.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

func gzipOf(t *testing.T) []byte {
	t.Helper()
	var packed bytes.Buffer
	into := gzip.NewWriter(&packed)
	_, err := into.Write(tarOf(t))
	if err := errors.Join(err, into.Close()); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

func zipOf(t *testing.T) []byte {
	t.Helper()
	var packed bytes.Buffer
	into := zip.NewWriter(&packed)
	eachFile(t, func(name string, content []byte) error {
		file, err := into.Create(name)
		if err != nil {
			return err
		}
		_, err = file.Write(content)
		return err
	})
	if err := into.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

// FuzzRoundTrip sends paths and queries to the example.
func FuzzRoundTrip(f *testing.F) {
	opened, err := archive.Open(f.Context(), example)
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{
		"/version", "/apis", "/api/v1/nodes?limit=1&continue=1",
		"/apis/policy/v1/poddisruptionbudgets?labelSelector=a", "/api/v1/namespaces/x/services/y/proxy/api/v1/alerts", "//", "/apis/a",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, target string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://archive.invalid/"+target, http.NoBody)
		if err != nil {
			return
		}
		response, err := opened.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil {
			t.Error(err)
		}
	})
}

// BenchmarkOpen reads the example from a compressed tar until the nodes are known.
func BenchmarkOpen(b *testing.B) {
	for b.Loop() {
		opened, err := archive.Open(b.Context(), example)
		if err != nil {
			b.Fatal(err)
		}
		reached, err := cluster.Connect(opened.Config(), "test")
		if err != nil {
			b.Fatal(err)
		}
		if _, err := reached.Kubernetes.CoreV1().Nodes().List(b.Context(), metav1.ListOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLargeList reads a list of pods that is almost as large as a file may be, page by page, and
// measures the time, and the memory of the process.
func BenchmarkLargeList(b *testing.B) {
	const size = 47 << 20
	var pods strings.Builder
	pods.WriteString("apiVersion: v1\nitems:\n")
	for i := 0; pods.Len() < size; i++ {
		fmt.Fprintf(&pods, "- apiVersion: v1\n  kind: Pod\n  metadata:\n    creationTimestamp: \"2021-08-03T09:09:11Z\"\n    name: "+
			"pod-%d\n    namespace: ns\n    resourceVersion: \"%d\"\n  spec:\n    containers:\n", i, i)
		for container := range 100 {
			fmt.Fprintf(&pods, "    - image: quay.io/example/image-%d:v1\n      name: container-%d\n", i%50, container)
		}
	}
	pods.WriteString("kind: PodList\nmetadata:\n  resourceVersion: \"9\"\n")
	dir := filepath.Join(b.TempDir(), "archive")
	if err := os.CopyFS(dir, files(map[string]string{"namespaces/ns/core/pods.yaml": pods.String()})); err != nil {
		b.Fatal(err)
	}
	pods.Reset()
	runtime.GC()
	for b.Loop() {
		opened, err := archive.Open(b.Context(), dir)
		if err != nil {
			b.Fatal(err)
		}
		reached, err := cluster.Connect(opened.Config(), "test")
		if err != nil {
			b.Fatal(err)
		}
		for options := (metav1.ListOptions{Limit: 500}); ; {
			page, err := reached.Kubernetes.CoreV1().Pods("ns").List(b.Context(), options)
			if err != nil {
				b.Fatal(err)
			}
			if options.Continue = page.Continue; options.Continue == "" {
				break
			}
		}
	}
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(usage.Maxrss)/(1<<10), "MiB-peak")
}
