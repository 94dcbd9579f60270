package lease_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/lease"
	"github.com/openshift/update-preflight/runner/record/recordstore"
	"github.com/openshift/update-preflight/test/user"
)

func TestGetByPrefix(t *testing.T) {
	t.Parallel()
	first, second, third := newIntent(), newIntent(), newIntent()
	// Prefixes that random IDs are unlikely to have.
	first.ID, second.ID, third.ID = "00ab0000-0000-4000-8000-000000000001", "00ab0000-0100-4000-8000-000000000002",
		"00ac0000-0000-4000-8000-000000000003"
	for _, intent := range []record.Intent{first, second, third} {
		begin(t, newRuns(api), intent) // in progress: ended runs may be pruned
	}
	for name, tc := range map[string]struct {
		reason, id, want string
		candidates       []string
	}{
		"Whole":     {reason: "an ID matches its run", id: first.ID, want: first.ID},
		"Prefix":    {reason: "a prefix matches the run", id: "00ac", want: third.ID},
		"Suffix":    {reason: "the suffix of the names of Jobs is a prefix", id: "00ab000001", want: second.ID},
		"Dashes":    {reason: "the displayed form matches", id: "00AB0000-01", want: second.ID},
		"Ambiguous": {reason: "the error has both", id: "00ab", candidates: []string{first.ID, second.ID}},
		"Short":     {reason: "a short prefix is rejected", id: "00a"},
		"None":      {reason: "no run matches", id: "00aa"},
		"NoneWhole": {reason: "no run matches", id: "00ab0000-0000-4000-8000-000000000009"},
		"Empty":     {reason: "an empty prefix is rejected", id: ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := newRuns(api).Get(t.Context(), tc.id)
			if tc.want != "" {
				if err != nil || got.ID != tc.want {
					t.Errorf("%s: got %q, %v, want %q", tc.reason, got.ID, err, tc.want)
				}
				return
			}
			var notFound *record.NotFoundError
			if !errors.As(err, &notFound) || notFound.ID != tc.id || !cmp.Equal(notFound.Candidates, tc.candidates) {
				t.Fatalf("%s: got %v", tc.reason, err)
			}
			if names := strings.Join(append(tc.candidates, ""), `" "`); !strings.Contains(err.Error(), strings.Trim(names, `" `)) {
				t.Errorf("%s: the error lacks the candidates: %v", tc.reason, err)
			}
			if _, err := newRuns(api).Follow(t.Context(), tc.id, func(record.Record) {}); !errors.As(err, &notFound) {
				t.Errorf("%s: Follow returned %v", tc.reason, err)
			}
			if err := newRuns(api).Cancel(t.Context(), tc.id); !errors.As(err, &notFound) {
				t.Errorf("%s: Cancel returned %v", tc.reason, err)
			}
		})
	}
	if _, found, err := newRuns(api).Latest(t.Context(), newIntent()); found || err != nil {
		t.Errorf("want no latest run of a release without runs: %v", err)
	}
}

func TestInvalidIntents(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		change func(*record.Intent)
		holder string
	}{
		"ID":    {reason: "it is part of the names of objects", change: func(i *record.Intent) { i.ID = "me" }, holder: "tester"},
		"OddID": {reason: "it must be a valid label value", change: func(i *record.Intent) { i.ID = "{" + i.ID + "}" }, holder: "tester"},
		"Digest": {
			reason: "it is part of the names of objects",
			change: func(i *record.Intent) { i.Target.Image = "registry.example/release:latest" }, holder: "tester",
		},
		"Selection": {
			reason: "its size is bounded", change: func(i *record.Intent) { i.Selection = strings.Repeat("x", 65<<10) },
			holder: "tester",
		},
		"Checks": {reason: "their size is bounded", change: func(i *record.Intent) {
			for n := range 300 {
				i.Checks = append(i.Checks, incompressible(n, 2048).Findings[0].Message)
			}
		}, holder: "tester"},
		"Holder": {reason: "an empty holder means an unheld lease", change: func(*record.Intent) {}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			intent := newIntent()
			tc.change(&intent)
			if _, err := newRuns(api).Begin(t.Context(), intent, tc.holder); err == nil {
				t.Errorf("%s, but it was accepted", tc.reason)
			}
		})
	}
}

// as returns a client of a user with exactly these permissions.
func as(t *testing.T, needs access.Needs) kubernetes.Interface {
	t.Helper()
	return kubernetes.NewForConfigOrDie(user.With(t, config, needs))
}

func TestDeclaredNeedsSuffice(t *testing.T) {
	t.Parallel()
	holder := newRuns(as(t, recordstore.Needs()), lease.Duration(time.Second))
	reader := newRuns(as(t, recordstore.ReadNeeds()))
	canceler := newRuns(as(t, recordstore.CancelNeeds()))
	intent := newIntent()
	begin(t, holder, intent).Put(aResult("Etcd.Disk"))
	awaitAbandoned(t, reader, intent.ID)
	awaitAbandoned(t, holder, intent.ID)
	held := begin(t, holder, again(intent))
	deleteLease(t, intent)
	if err := canceler.Cancel(t.Context(), intent.ID[:9]); err != nil {
		t.Errorf("cancel: %v", err)
	}
	if err := canceler.Cancel(t.Context(), intent.ID); err != nil {
		t.Errorf("cancel again: %v", err)
	}
	deleteLease(t, intent)
	for i := range 100 {
		held.Put(incompressible(i, 4096))
	}
	deleteMap(t, headName(intent.ID))
	if err := held.Detach(t.Context()); err != nil {
		t.Errorf("detach: %v", err)
	}
	finish(t, begin(t, holder, again(intent)))
	_, err := reader.Get(t.Context(), intent.ID)
	_, errListed := reader.List(t.Context())
	_, _, errLatest := reader.Latest(t.Context(), intent)
	_, errFollowed := reader.Follow(t.Context(), intent.ID, func(record.Record) {})
	for name, err := range map[string]error{"Get": err, "List": errListed, "Latest": errLatest, "Follow": errFollowed} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Missing permissions are reported at once, with the error of the API server.
func TestMissingPermissions(t *testing.T) {
	t.Parallel()
	store := newRuns(as(t, access.Needs{}))
	intent := newIntent()
	_, began := store.Begin(t.Context(), intent, "tester")
	_, got := store.Get(t.Context(), intent.ID)
	_, found := store.Get(t.Context(), intent.ID[:8])
	_, listed := store.List(t.Context())
	_, _, latest := store.Latest(t.Context(), intent)
	_, followed := store.Follow(t.Context(), intent.ID, func(record.Record) {})
	for name, err := range map[string]error{
		"Begin": began, "Get": got, "GetPrefix": found, "List": listed, "Latest": latest, "Follow": followed,
		"Cancel": store.Cancel(t.Context(), intent.ID),
	} {
		if err == nil || !strings.Contains(err.Error(), "forbidden") {
			t.Errorf("%s: want Forbidden, got %v", name, err)
		}
	}
}

func TestUnreachableAPIServer(t *testing.T) {
	t.Parallel()
	unreachable := rest.CopyConfig(config)
	unreachable.Host = "https://127.0.0.1:1"
	client, err := kubernetes.NewForConfig(unreachable)
	if err != nil {
		t.Fatal(err)
	}
	store, intent := newRuns(client), newIntent()
	for name, request := range map[string]func(context.Context) error{
		"Begin": func(ctx context.Context) error { _, err := store.Begin(ctx, intent, "tester"); return err },
		"Get":   func(ctx context.Context) error { _, err := store.Get(ctx, intent.ID); return err },
		"Follow": func(ctx context.Context) error {
			_, err := store.Follow(ctx, intent.ID, func(record.Record) {})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			if err := request(ctx); err == nil {
				t.Error("want an error without an API server")
			}
		})
	}
}
