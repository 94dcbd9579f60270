package faults_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/openshift/update-preflight/test/cluster"
	"github.com/openshift/update-preflight/test/faults"
)

// local is the control plane behind the proxies.
var local *cluster.Cluster

func TestMain(m *testing.M) {
	cluster.Main(m, func(c *cluster.Cluster) { local = c }, cluster.ControlPlaneOnly())
}

// start starts a proxy in front of the control plane.
func start(t *testing.T, injected ...faults.Fault) *faults.Proxy {
	t.Helper()
	p, err := faults.Start(local.Config, injected...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// through returns a client with the kubeconfig of a proxy.
func through(t *testing.T, p *faults.Proxy) kubernetes.Interface {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := p.Kubeconfig(path); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// direct returns a client without a proxy, for the default namespace.
func direct(t *testing.T) corev1client.ConfigMapInterface {
	t.Helper()
	client, err := kubernetes.NewForConfig(local.Config)
	if err != nil {
		t.Error(err)
	}
	return client.CoreV1().ConfigMaps("default")
}

// remove deletes a ConfigMap if it exists.
func remove(t *testing.T, name string) {
	t.Helper()
	err := direct(t).Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Error(err)
	}
}

func exists(t *testing.T, name string) bool {
	t.Helper()
	_, err := direct(t).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Error(err)
	}
	return err == nil
}

// TestWritesAreCounted verifies which requests count as writes.
func TestWritesAreCounted(t *testing.T) {
	p := start(t)
	client := through(t, p)
	maps := client.CoreV1().ConfigMaps("default")
	steps := map[string]struct {
		reason string
		do     func() error
		writes int
	}{
		"1 dry run": {
			reason: "a dry run changes nothing",
			do: func() error {
				_, err := maps.Create(t.Context(), configMap("counted"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
				return err
			},
		},
		"2 review": {
			reason: "a review is a POST that changes no object",
			do: func() error {
				_, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{
					Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
						Verb:     "get",
						Resource: "pods",
					}},
				}, metav1.CreateOptions{})
				return err
			},
		},
		"3 create": {
			reason: "a POST of an object", writes: 1,
			do: func() error {
				_, err := maps.Create(t.Context(), configMap("counted"), metav1.CreateOptions{})
				return err
			},
		},
		"4 get": {
			reason: "a read is not a write",
			do: func() error {
				_, err := maps.Get(t.Context(), "counted", metav1.GetOptions{})
				return err
			},
		},
		"5 update": {
			reason: "a PUT", writes: 1,
			do: func() error {
				_, err := maps.Update(t.Context(), configMap("counted"), metav1.UpdateOptions{})
				return err
			},
		},
		"6 delete": {
			reason: "a DELETE", writes: 1,
			do: func() error { return maps.Delete(t.Context(), "counted", metav1.DeleteOptions{}) },
		},
	}
	for _, name := range []string{"1 dry run", "2 review", "3 create", "4 get", "5 update", "6 delete"} {
		before := len(p.Writes())
		if err := steps[name].do(); err != nil {
			t.Fatal(err)
		}
		if got := len(p.Writes()) - before; got != steps[name].writes {
			t.Errorf("%s: %s: counted %d writes, want %d", name, steps[name].reason, got, steps[name].writes)
		}
	}
	var got []string
	for _, request := range p.Requests() {
		got = append(got, fmt.Sprintf("%s %s %q", request.Method, request.Path, request.Write))
	}
	want := []string{
		`POST /api/v1/namespaces/default/configmaps ""`,
		`POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews ""`,
		`POST /api/v1/namespaces/default/configmaps "POST configmaps 1"`,
		`GET /api/v1/namespaces/default/configmaps/counted ""`,
		`PUT /api/v1/namespaces/default/configmaps/counted "PUT configmaps 1"`,
		`DELETE /api/v1/namespaces/default/configmaps/counted "DELETE configmaps 1"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("all requests must be recorded, in order: -want, +got:\n%s", diff)
	}
}

// TestAtWrite verifies that a write lost before it arrives is not executed, that a write
// whose response is lost is executed, and that the client receives an error in both cases.
func TestAtWrite(t *testing.T) {
	for moment, executed := range map[faults.Moment]bool{faults.Before: false, faults.After: true} {
		t.Run(string(moment), func(t *testing.T) {
			lost, kept := "lost-"+string(moment), "kept-"+string(moment)
			t.Cleanup(func() { remove(t, lost); remove(t, kept) })
			existed := make(chan bool, 1)
			p := start(t, faults.AtWrite("POST configmaps 2", moment, func() { existed <- exists(t, lost) }))
			maps := through(t, p).CoreV1().ConfigMaps("default")
			if _, err := maps.Create(t.Context(), configMap(kept), metav1.CreateOptions{}); err != nil {
				t.Fatalf("only the second write may fail: %v", err)
			}
			if _, err := maps.Create(t.Context(), configMap(lost), metav1.CreateOptions{}); err == nil {
				t.Error("the second write must fail, and succeeded")
			}
			if then, now := <-existed, exists(t, lost); then != executed || now != executed {
				t.Errorf("executed when the hook was called: %t, at the end: %t; want %t", then, now, executed)
			}
			if err := maps.Delete(t.Context(), kept, metav1.DeleteOptions{}); err != nil {
				t.Errorf("the next write must succeed: %v", err)
			}
		})
	}
}

// TestLossy verifies that a write fails once and then passes, and whether the API server
// executed the first one.
func TestLossy(t *testing.T) {
	for moment, executed := range map[faults.Moment]bool{faults.Before: false, faults.After: true} {
		t.Run(string(moment), func(t *testing.T) {
			name := "lossy-" + string(moment)
			t.Cleanup(func() { remove(t, name) })
			maps := through(t, start(t, faults.Lossy(moment))).CoreV1().ConfigMaps("default")
			if _, err := maps.Create(t.Context(), configMap(name), metav1.CreateOptions{}); err == nil {
				t.Error("the first write must fail, and succeeded")
			}
			if got := exists(t, name); got != executed {
				t.Errorf("the first write was executed: %t, want %t", got, executed)
			}
			if _, err := maps.Create(t.Context(), configMap(name), metav1.CreateOptions{}); apierrors.IsAlreadyExists(err) != executed {
				t.Errorf("the second write failed with AlreadyExists: %t, want %t: %v", !executed, executed, err)
			}
		})
	}
}

// TestShortReads verifies that a read fails once and then passes, and that writes pass.
func TestShortReads(t *testing.T) {
	t.Cleanup(func() { remove(t, "short") })
	maps := through(t, start(t, faults.ShortReads())).CoreV1().ConfigMaps("default")
	if _, err := maps.Create(t.Context(), configMap("short"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Get(t.Context(), "short", metav1.GetOptions{}); err == nil || !strings.Contains(err.Error(), "reading response body") {
		t.Errorf("the first read must end early: %v", err)
	}
	if _, err := maps.Get(t.Context(), "short", metav1.GetOptions{}); err != nil {
		t.Errorf("the second read must pass: %v", err)
	}
}

// TestRejections verifies the responses of an overloaded and of an unavailable server.
func TestRejections(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, retryAfter string
		fault              faults.Fault
		code               int
	}{
		"Busy":        {reason: "429 has Retry-After", fault: faults.Busy(3), code: http.StatusTooManyRequests, retryAfter: "1"},
		"Unavailable": {reason: "503 has no Retry-After", fault: faults.Unavailable(3), code: http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, tc.fault)
			var got []int
			for range 6 {
				code, header, body := get(t, p, "/api/v1/namespaces/default")
				got = append(got, code)
				if code != http.StatusOK && (header.Get("Retry-After") != tc.retryAfter || !strings.Contains(body, `"kind":"Status"`)) {
					t.Errorf("%s: Retry-After %q, body %s", tc.reason, header.Get("Retry-After"), body)
				}
			}
			if diff := cmp.Diff([]int{tc.code, 200, 200, tc.code, 200, 200}, got); diff != "" {
				t.Errorf("every third request must be rejected, beginning with the first: -want, +got:\n%s", diff)
			}
		})
	}
}

// TestSlow verifies that a response is late, and that the delay ends when the client
// closes its connection.
func TestSlow(t *testing.T) {
	const delay = 50 * time.Millisecond
	begun := time.Now()
	get(t, start(t, faults.Slow(delay)), "/version")
	if took := time.Since(begun); took < delay {
		t.Errorf("the response took %s, want at least %s", took, delay)
	}
	p := start(t, faults.Slow(time.Hour))
	ctx, cancel := context.WithTimeout(t.Context(), delay)
	defer cancel()
	_, err := through(t, p).CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{})
	if err == nil {
		t.Errorf("a request with a delay of an hour succeeded within %s", delay)
	}
}

// TestWatches verifies that events of watches are forwarded at once, and that an informer
// resumes and misses no object after its watches are cut or expire, or all connections
// break.
func TestWatches(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		disturb func(*faults.Proxy)
		expires bool
	}{
		"Cut":         {reason: "a watch is resumed", disturb: (*faults.Proxy).CutWatches},
		"Connections": {reason: "a watch whose connection broke is resumed", disturb: (*faults.Proxy).CutConnections},
		"Expired":     {reason: "a watch that is too old is not resumed", disturb: (*faults.Proxy).ExpireWatches, expires: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t)
			await, expirations := startInformer(t, p)
			maps := through(t, start(t)).CoreV1().ConfigMaps("default")
			for _, step := range []string{"before", "after"} {
				object := strings.ToLower(name) + "-" + step
				t.Cleanup(func() { remove(t, object) })
				if _, err := maps.Create(t.Context(), configMap(object), metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
				await(object)
				if step == "before" {
					tc.disturb(p)
				}
			}
			if got := expirations() > 0; got != tc.expires {
				t.Errorf("%s: its resource version was rejected as too old: %t, want %t", tc.reason, got, tc.expires)
			}
		})
	}
}

// startInformer starts an informer of ConfigMaps through a proxy. await returns once the
// informer has received that ConfigMap; expirations returns how often its resource version
// was rejected as too old.
func startInformer(t *testing.T, p *faults.Proxy) (await func(name string), expirations func() int) {
	t.Helper()
	factory := informers.NewSharedInformerFactoryWithOptions(through(t, p), 0, informers.WithNamespace("default"))
	informer := factory.Core().V1().ConfigMaps().Informer()
	var mutex sync.Mutex
	expired, added := 0, make(chan string, 100)
	must(t, informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		mutex.Lock()
		defer mutex.Unlock()
		if apierrors.IsResourceExpired(err) {
			expired++
		}
	}))
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(object any) {
		if item, ok := object.(metav1.Object); ok {
			added <- item.GetName()
		}
	}})
	must(t, err)
	factory.StartWithContext(t.Context())
	if !cache.WaitForCacheSync(t.Context().Done(), informer.HasSynced) {
		t.Fatal("the informer did not sync")
	}
	return func(name string) {
			t.Helper()
			for {
				select {
				case got := <-added:
					if got == name {
						return
					}
				case <-time.After(time.Minute):
					t.Fatalf("the informer did not receive ConfigMap %s within a minute", name)
				}
			}
		}, func() int {
			mutex.Lock()
			defer mutex.Unlock()
			return expired
		}
}

// TestClosedProxy verifies that Close ends the requests in progress and accepts no others.
func TestClosedProxy(t *testing.T) {
	p := start(t)
	events, err := through(t, p).CoreV1().ConfigMaps("").Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	for range events.ResultChan() {
		continue // until it is closed
	}
	if _, err := through(t, p).CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err == nil {
		t.Error("a closed proxy served a request")
	}
}

func get(t *testing.T, p *faults.Proxy, path string) (int, http.Header, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.Config().Host+path, http.NoBody)
	must(t, err)
	client, err := rest.HTTPClientFor(p.Config())
	must(t, err)
	response, err := client.Do(request)
	must(t, err)
	body, err := io.ReadAll(response.Body)
	must(t, err)
	must(t, response.Body.Close())
	return response.StatusCode, response.Header, string(body)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestClock verifies the Date header of responses.
func TestClock(t *testing.T) {
	_, header, _ := get(t, start(t, faults.Clock(4*time.Hour)), "/version")
	date, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		t.Fatal(err)
	}
	if ahead := time.Until(date); ahead < 3*time.Hour || ahead > 5*time.Hour {
		t.Errorf("the clock is %s ahead, want 4 h", ahead)
	}
}
