package baseline_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/collector/baseline"
)

// taken is when the states of the tests are of.
func taken() time.Time { return time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC) }

// shop has a user's objects and the cluster's, with problems.
func shop() baseline.State {
	return baseline.State{
		Taken: taken(), ClusterID: "6ba7b810-9dad-41d1-80b4-00c04fd430c8", Version: "4.19.3", Image: "quay.io/release@sha256:0123",
		Unread: map[baseline.Kind]string{baseline.Route: "could not list the routes of namespace shop"},
		Objects: map[baseline.Key]baseline.Object{
			{Kind: baseline.Deployment, Namespace: "shop", Name: "cart"}: {
				Desired: 3, Ready: 1, Restarts: 0.333, Revision: "7", Generation: 12, UID: "1kpznf6",
				Owner:     baseline.Key{Kind: "Shop.example.com", Namespace: "shop", Name: "cart"},
				Recovered: taken(), Problems: []baseline.Problem{
					{Reason: "CrashLoopBackOff", Since: taken(), Message: "2 pods of shop/cart wait", Node: "worker-1"},
					{Reason: "Unavailable", Since: taken(), Message: "1 of 3 pods are ready"},
				},
			},
			{Kind: baseline.StatefulSet, Namespace: "shop", Name: "orders"}:                  {Detail: "orders-6d5f9"},
			{Kind: baseline.ClusterServiceVersion, Namespace: "shop", Name: "payments"}:      {Detail: "payments.v1.2.3"},
			{Kind: baseline.PersistentVolumeClaim, Namespace: "shop", Name: "data-orders-0"}: {Detail: "Bound"},
			{Kind: baseline.Alert, Namespace: "shop", Name: "CartDown/critical"}:             {Problems: []baseline.Problem{{Reason: "Firing"}}},
			{Kind: baseline.Service, Namespace: "openshift-ingress", Name: "router-default"}: {
				Ready: 2, Release: true,
				Refs: []baseline.Key{{Kind: baseline.Deployment, Namespace: "openshift-ingress", Name: "router-default"}},
			},
			{Kind: baseline.Service, Namespace: "shop", Name: "gatekeeper"}: {
				Ready: 1, Revision: "5f2c01aa",
				Refs: []baseline.Key{
					{Kind: baseline.Deployment, Namespace: "shop", Name: "cart"},
					{Kind: baseline.Node, Name: "worker-1"},
					{Kind: baseline.Alert, Namespace: "shop", Name: "CartDown/critical"},
				},
			},
			{Kind: baseline.Node, Name: "worker-1"}: {
				Detail: "ee3f", Revision: "openshift-machine-api/a",
				Cordoned: true,
			},
			{Kind: baseline.ValidatingWebhook, Name: "policy"}: {
				Detail:   "shop/gatekeeper",
				Problems: []baseline.Problem{{Reason: "NoReadyEndpoints", Message: "Service shop/gatekeeper has no ready endpoint"}},
			},
			{Kind: baseline.MachineSet, Namespace: "openshift-machine-api", Name: "negative"}: {Desired: 1, Ready: 2},
		},
	}
}

func pack(t *testing.T, s baseline.State) []byte {
	t.Helper()
	packed, err := s.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return packed
}

// compressed is a text as a packed State is compressed.
func compressed(tb testing.TB, text string) []byte {
	tb.Helper()
	var buffer bytes.Buffer
	into := gzip.NewWriter(&buffer)
	if _, err := into.Write([]byte(text)); err != nil {
		tb.Fatal(err)
	}
	if err := into.Close(); err != nil {
		tb.Fatal(err)
	}
	return buffer.Bytes()
}

// What is compared after the update survives the storage: all but the times, messages and nodes of problems, and what only a state
// after the update is judged by.
func TestPackedStateIsTheSame(t *testing.T) {
	want := shop()
	for key, object := range want.Objects {
		for at, problem := range object.Problems {
			object.Problems[at] = baseline.Problem{Reason: problem.Reason}
		}
		object.Recovered, object.Cordoned = time.Time{}, false
		want.Objects[key] = object
	}
	got, err := baseline.Unpack(pack(t, shop()))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !bytes.Equal(pack(t, shop()), pack(t, got)) {
		t.Error("one State has two packed forms")
	}
}

// No value of a State makes it one that cannot be read: what is too long is cut, and what is no number is 0.
func TestPackedStateCanBeRead(t *testing.T) {
	key := baseline.Key{Kind: baseline.CSINode, Name: "worker-1"}
	for _, restarts := range []float64{math.NaN(), math.Inf(1), 1e300, 0.123456} {
		object := baseline.Object{
			Desired: math.MinInt32, Ready: math.MaxInt32, Restarts: restarts, Detail: strings.Repeat("x", 1<<20),
			Revision: strings.Repeat("y", 1<<20),
		}
		got, err := baseline.Unpack(pack(t, baseline.State{Objects: map[baseline.Key]baseline.Object{key: object}}))
		if err != nil {
			t.Fatal(err)
		}
		read := got.Objects[key]
		if read.Desired != object.Desired || read.Ready != object.Ready || read.Detail == "" || read.Revision == "" || math.IsNaN(read.Restarts) {
			t.Errorf("%d of %d with %v restarts, detail %.9q, revision %.9q", read.Ready, read.Desired, read.Restarts, read.Detail, read.Revision)
		}
	}
}

// A cluster with providers of a cloud serves a thousand kinds, and one without permissions has as many that were not read.
func TestManyKinds(t *testing.T) {
	state := baseline.State{APIs: map[baseline.Kind]baseline.API{}, Unread: map[baseline.Kind]string{}}
	for i := range 1000 {
		kind := baseline.Kind(fmt.Sprintf("Resource%d.compute.aws.example.org", i))
		state.APIs[kind] = baseline.API{Version: "compute.aws.example.org/v1beta1", Resource: fmt.Sprintf("resource%ds", i)}
		state.Unread[kind] = "could not list the resources: it is forbidden"
	}
	got, err := baseline.Unpack(pack(t, state))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.APIs) != 1000 || len(got.Unread) != 1000 {
		t.Errorf("%d APIs, %d kinds that were not read", len(got.APIs), len(got.Unread))
	}
}

func TestUnpackRefuses(t *testing.T) {
	many := strings.Repeat(`"a":{},`, baseline.MaxObjects)
	for name, tc := range map[string]struct {
		reason string
		data   []byte
		want   string
	}{
		"Nothing": {reason: "no baseline is no empty one", want: "gzip"},
		"Garbage": {reason: "other bytes", data: []byte("a baseline"), want: "gzip"},
		"OtherFormat": {
			reason: "another version of the tool may mean something else by it", data: compressed(t, `{"format":1,"objects":[]}`),
			want: "format 1",
		},
		"NoFormat":  {reason: "JSON of something else", data: compressed(t, `{"objects":{}}`), want: "format 0"},
		"NoObject":  {reason: "a list", data: compressed(t, `[]`), want: "not the state"},
		"NoObjects": {reason: "objects that are a list", data: compressed(t, `{"format":2,"objects":[]}`), want: "not the state"},
		"Cut":       {reason: "a part would look like all", data: compressed(t, `{"format":2,"objects":{"a":{"Node":{"b":{}`), want: "EOF"},
		"Truncated": {reason: "the bytes end before the text", data: pack(t, shop())[:200], want: "EOF"},
		"Checksum": {
			reason: "a bit of it is not as it was written",
			data:   func() []byte { p := pack(t, shop()); p[len(p)-6] ^= 1; return p }(), want: "checksum",
		},
		"NoNumber": {
			reason: "an object that cannot be decoded is named",
			data:   compressed(t, `{"format":2,"objects":{"a":{"Node":{"b":{"d":"x"}}}}}`), want: "Node a/b",
		},
		"TooLarge": {reason: "more bytes than one may have", data: make([]byte, baseline.MaxPacked+1), want: "more than"},
		"Bomb": {
			reason: "few bytes that become many", data: compressed(t, `{"format":2,"x":"`+strings.Repeat(" ", 33<<20)),
			want: "bytes of text",
		},
		"After": {
			reason: "the same behind the state", data: compressed(t, `{"format":2}`+strings.Repeat(" ", 33<<20)),
			want: "bytes of text",
		},
		"ManyObjects": {
			reason: "an object in memory is larger than its text",
			data:   compressed(t, `{"format":2,"objects":{"a":{"Node":{`+many+`"a":{}}}}}`), want: "more than 300000 objects",
		},
		"LongObject": {
			reason: "so is a problem",
			data:   compressed(t, `{"format":2,"objects":{"a":{"Node":{"b":{"p":[""`+strings.Repeat(`,""`, 1<<20)+`]}}}}}`), want: "more than 65536",
		},
		"LongName": {
			reason: "a message names no name of megabytes",
			data:   compressed(t, `{"format":2,"objects":{"a":{"Node":{"`+strings.Repeat("n", 1<<20)+`":1}}}}`), want: "Node a/",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := baseline.Unpack(tc.data)
			if err == nil || !strings.Contains(err.Error(), tc.want) || len(err.Error()) > 2<<10 {
				t.Errorf("error %.200v, want one with %q: %s", err, tc.want, tc.reason)
			}
		})
	}
}

// FuzzUnpack holds that any text is refused, or is a State that can be stored and is then the same.
func FuzzUnpack(f *testing.F) {
	f.Add(`{"format":2,"taken":"2026-11-27T10:00:00Z","unread":{"Node":"x"},"objects":{"":{"Node":{"a":{"d":1,"m":-1,"s":0.5,"r":"1","g":2,"t":"b","p":["B","A","B"]}}}}}`)
	f.Add(`{"format":2,"objects":{"a":{},"a":{"Node":{"b":null}}}}`)
	f.Add(`{"objects":{}}`)
	f.Fuzz(func(t *testing.T, text string) {
		found, err := baseline.Unpack(compressed(t, text))
		if err != nil {
			return
		}
		again, err := baseline.Unpack(pack(t, found))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(pack(t, found), pack(t, again)) {
			t.Errorf("%q: -read +written and read again:\n%s", text, cmp.Diff(found, again))
		}
	})
}

// hash is of the kind that records of runs use for names.
func hash(name string) string {
	sum := sha256.Sum256([]byte("salt" + name))
	return hex.EncodeToString(sum[:6])
}

// A State without names of users can be compared with another one of the same hash.
func TestRedacted(t *testing.T) {
	redacted := shop().Redacted(hash)
	got, err := baseline.Unpack(pack(t, redacted))
	if err != nil {
		t.Fatal(err)
	}
	for key, object := range shop().Objects {
		later, ok := got.Objects[key.Redacted(hash)]
		if ofService := key.Kind == baseline.Service && key.Namespace == "shop"; ofService { // a digest of labels without a key
			object.Revision = hash("shop/" + object.Revision)
		}
		if !ok || later.Desired != object.Desired || later.Revision != object.Revision || len(later.Problems) != len(object.Problems) {
			t.Errorf("%s is %+v, want %+v", key, later, object)
		}
	}
	for key := range map[baseline.Key]bool{
		{Kind: baseline.Node, Name: "worker-1"}:                                          true,
		{Kind: baseline.Service, Namespace: "openshift-ingress", Name: "router-default"}: true,
	} {
		if _, ok := got.Objects[key]; !ok {
			t.Errorf("%s, which no user has named, has no name", key)
		}
	}
	if detail := got.Objects[baseline.Key{
		Kind: baseline.PersistentVolumeClaim, Namespace: "shop",
		Name: "data-orders-0",
	}.Redacted(hash)].Detail; detail != "Bound" {
		t.Errorf("the phase of a claim is %q", detail)
	}
	service := baseline.Key{Kind: baseline.Service, Namespace: "shop", Name: "gatekeeper"}.Redacted(hash)
	if detail := got.Objects[baseline.Key{Kind: baseline.ValidatingWebhook, Name: "policy"}].Detail; detail != service.Namespace+"/"+
		service.Name {
		t.Errorf("the Service of a webhook is %q, want that of %s", detail, service)
	}
	text := fmt.Sprintf("%+v", redacted)
	for _, name := range []string{"shop", "cart", "orders", "payments", "CartDown", "gatekeeper", "5f2c01aa"} {
		if strings.Contains(text, name) {
			t.Errorf("%q is in the redacted State:\n%s", name, text)
		}
	}
	if _, ok := got.Unread[baseline.Route]; !ok {
		t.Error("a kind that was not read seems to be complete")
	}
}

// large is the state of a cluster with 5000 workloads in 200 namespaces, whose names nothing predicts.
func large() baseline.State {
	random := rand.New(rand.NewSource(1))
	text := func(letters string, length int) string {
		name := make([]byte, length)
		for i := range name {
			name[i] = letters[random.Intn(len(letters))]
		}
		return string(name)
	}
	teams := []string{"web", "api", "cart", "orders", "worker", "cache", "auth", "search", "billing", "gateway"}
	s := baseline.State{
		Taken: taken(), Version: "4.19.3", Image: "quay.io/release@sha256:" + text("0123456789abcdef", 64),
		Objects: map[baseline.Key]baseline.Object{},
	}
	add := func(kind baseline.Kind, number int, object func() baseline.Object) {
		for i := range number {
			name := teams[random.Intn(len(teams))] + "-" + text("bcdfghjklmnpqrstvwxz2456789", 5)
			s.Objects[baseline.Key{Kind: kind, Namespace: fmt.Sprintf("team-%s-%03d", teams[i%len(teams)], i%200), Name: name}] = object()
		}
	}
	replicas := func() int32 { return int32(1 + random.Intn(5)) }
	add(baseline.Deployment, 5000, func() baseline.Object {
		desired := replicas()
		return baseline.Object{
			Desired: desired, Ready: desired, Restarts: random.Float64(), Revision: fmt.Sprint(1 + random.Intn(40)),
			Generation: int64(1 + random.Intn(80)), UID: text("0123456789abcdefghijklmnopqrstuvwxyz", 7),
		}
	})
	add(baseline.Service, 5000, func() baseline.Object {
		name := teams[random.Intn(len(teams))] + "-" + text("bcdfghjklmnpqrstvwxz2456789", 5)
		return baseline.Object{
			Ready: replicas(), Revision: fmt.Sprintf("%08x", random.Uint32()),
			UID: text("0123456789abcdefghijklmnopqrstuvwxyz", 7), Refs: []baseline.Key{{Kind: baseline.Deployment, Namespace: ".", Name: name}},
		}
	})
	add(baseline.Route, 2000, func() baseline.Object {
		return baseline.Object{Ready: 1, UID: text("0123456789abcdefghijklmnopqrstuvwxyz", 7)}
	})
	add(baseline.PersistentVolumeClaim, 2000, func() baseline.Object {
		return baseline.Object{Detail: "Bound", UID: text("0123456789abcdefghijklmnopqrstuvwxyz", 7)}
	})
	for _, kind := range []baseline.Kind{
		"HorizontalPodAutoscaler.autoscaling", "PodDisruptionBudget.policy", "CronJob.batch",
		"Certificate.cert-manager.io",
	} {
		add(kind, 1000, func() baseline.Object {
			return baseline.Object{
				Revision: fmt.Sprintf("%08x", random.Uint32()), Generation: int64(1 + random.Intn(8)),
				UID: text("0123456789abcdefghijklmnopqrstuvwxyz", 7),
			}
		})
	}
	for i := range 500 {
		name := fmt.Sprintf("ip-10-0-%d-%d.ec2.internal", i/256, i%256)
		s.Objects[baseline.Key{Kind: baseline.Node, Name: name}] = baseline.Object{
			Detail:   text("0123456789abcdef", 32),
			Revision: "openshift-machine-api/cluster-worker-" + text("bcdfgh", 5),
		}
		s.Objects[baseline.Key{Kind: baseline.CSINode, Name: name}] = baseline.Object{Detail: "ebs.csi.aws.com,efs.csi.aws.com"}
	}
	for i := range 33 {
		s.Objects[baseline.Key{Kind: baseline.ClusterOperator, Name: fmt.Sprintf("operator-%d", i)}] = baseline.Object{Detail: "4.19.3"}
	}
	return s
}

// The baseline of a large cluster is stored in one object beside the record of its run, whose limit is a megabyte.
func TestLargeStateIsSmall(t *testing.T) {
	const most = 400_000 // most of it are digests and references, which nothing predicts
	if packed := pack(t, large()); len(packed) > most {
		t.Errorf("%d objects are packed into %d bytes, want at most %d", len(large().Objects), len(packed), most)
	}
}

func BenchmarkPack(b *testing.B) {
	s := large()
	for b.Loop() {
		packed, err := s.Pack()
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(packed)), "bytes")
	}
}

func BenchmarkUnpack(b *testing.B) {
	packed, err := large().Pack()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := baseline.Unpack(packed); err != nil {
			b.Fatal(err)
		}
	}
}
