package signature_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openshift/update-preflight/signature"
	"github.com/openshift/update-preflight/signature/store"
)

// TestAttacksByRedirects reads a store with a password that redirects to other hosts.
func TestAttacksByRedirects(t *testing.T) {
	k := keyring(t, "a", newSigner(t, "a", nil))
	for name, tc := range map[string]struct {
		reason string
		status int
	}{
		"Found":     {reason: "the password is not sent to another host", status: http.StatusFound},
		"Permanent": {reason: "the password is not sent after a permanent redirect", status: http.StatusPermanentRedirect},
	} {
		t.Run(name, func(t *testing.T) {
			var mutex sync.Mutex
			var sent []string
			inside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mutex.Lock()
				sent = append(sent, r.Method+" "+r.Header.Get("Authorization")+r.Header.Get("Cookie"))
				mutex.Unlock()
				if strings.Contains(r.Referer(), "secret") {
					t.Errorf("%s: Referer %q", tc.reason, r.Referer())
				}
				_, _ = w.Write([]byte(`{"Token":"of the metadata service"}`))
			}))
			t.Cleanup(inside.Close)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if _, password, _ := r.BasicAuth(); password != "secret" {
					t.Errorf("%s: the store receives the password %q", tc.reason, password)
				}
				http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
				// Go compares names, so another name of the same machine is another host.
				http.Redirect(w, r, strings.Replace(inside.URL, "127.0.0.1", "localhost", 1), tc.status)
			}))
			t.Cleanup(server.Close)
			location := strings.Replace(server.URL, "http://", "http://me:secret@", 1)
			r, err := frugal(t, signature.Trust{Keyrings: []signature.Keyring{k}, Stores: []store.Store{newStore(t, location)}})
			check(t, tc.reason, "MalformedSignature", r, err)
			if err != nil && (strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "Token")) {
				t.Errorf("%s: message %q repeats what it received", tc.reason, err)
			}
			mutex.Lock()
			defer mutex.Unlock()
			var want []string
			for range len(sent) {
				want = append(want, "GET ")
			}
			if diff := cmp.Diff(want, sent); diff != "" || len(sent) > 10 {
				t.Errorf("%s: %d requests (-want, +got):\n%s", tc.reason, len(sent), diff)
			}
		})
	}
}

// slow is a store that serves one byte a second until the context ends, as often as it
// is read.
type slow struct {
	// served counts the bytes.
	served int
}

func (s *slow) String() string { return "slow" }

// Signature implements signature.Store.
func (s *slow) Signature(ctx context.Context, _ string, _ int) ([]byte, error) {
	var received []byte
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Second):
			received = append(received, 'a')
			s.served++
		}
		if len(received) == 64<<10 {
			return received, nil
		}
	}
}

// TestAttacksBySlowStores checks that a verification ends, however many stores are slow and
// without a deadline of the caller, and that each store has a share of the time.
func TestAttacksBySlowStores(t *testing.T) {
	const most = 120 // bytes that a store serves until the limit of a verification, two minutes
	k := keyring(t, "a", newSigner(t, "a", nil))
	for name, tc := range map[string]struct {
		reason string
		stores int
	}{
		"One":  {reason: "one byte a second", stores: 1},
		"Many": {reason: "as many stores as ClusterVersion allows", stores: 32},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				attackers := make([]slow, tc.stores)
				var stores []store.Store
				for i := range attackers {
					stores = append(stores, &attackers[i])
				}
				r, err := signature.Verify(context.Background(), pullSpec, signature.Trust{Keyrings: []signature.Keyring{k}, Stores: stores})
				check(t, tc.reason, "Timeout", r, err)
				served := 0
				for i, attacker := range attackers {
					served += attacker.served
					if attacker.served == 0 {
						t.Errorf("%s: store %d was not read", tc.reason, i)
					}
				}
				if served > most {
					t.Errorf("%s: %d bytes were read, want at most %d", tc.reason, served, most)
				}
			})
		})
	}
}
