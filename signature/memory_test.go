package signature_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	configfake "github.com/openshift/client-go/config/clientset/versioned/fake"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/openshift/update-preflight/signature"
	"github.com/openshift/update-preflight/signature/store"
	"github.com/openshift/update-preflight/test/release"
)

// TestVerifyMemory bounds the memory used for hostile signatures.
func TestVerifyMemory(t *testing.T) {
	a := newSigner(t, "a", nil)
	k := keyring(t, "a", a)
	signedClaim := func(claim string) []byte { return message{body: []byte(claim)}.bytes(t, a) }
	bomb := zip(t, 1, make([]byte, 30<<20))
	const large = 60 << 10
	for name, tc := range map[string]struct {
		reason string
		store  store.Store
		want   string
	}{
		"Bomb":       {reason: "30 MiB in 30 KiB, nine times", store: repeated(bomb), want: "TooLarge"},
		"ZLIBBomb":   {reason: "ZLIB compression", store: repeated(zip(t, 2, make([]byte, 30<<20))), want: "TooLarge"},
		"BombInBomb": {reason: "a nested compression bomb", store: repeated(zip(t, 1, bomb)), want: "MalformedSignature"},
		"BombInClaim": {
			reason: "a compression bomb as the signed content", store: repeated(message{body: bomb}.bytes(t, a)),
			want: "InvalidClaim",
		},
		"SignedBomb": {
			reason: "a signed message that decompresses to 30 MiB",
			store:  repeated(zip(t, 1, signedClaim(strings.Repeat(" ", 30<<20)))), want: "TooLarge",
		},
		"BZIP2": {
			reason: "bzip2 allows the highest expansion",
			store:  repeated(newPacket(8, append([]byte("\x03BZh9"), make([]byte, large)...))), want: "UnsupportedSignature",
		},
		"Packets": {reason: "only empty packets", store: repeated(bytes.Repeat([]byte{0xcb, 0}, large/2)), want: "MalformedSignature"},
		"Length": {
			reason: "a packet with a declared length of 4 GiB", store: repeated([]byte{0xcb, 0xff, 0xff, 0xff, 0xff, 0xff, 'b'}),
			want: "MalformedSignature",
		},
		"OldLength": {
			reason: "an old-format packet with a declared length of 4 GiB",
			store:  repeated([]byte{0xae, 0xff, 0xff, 0xff, 0xff, 'b'}), want: "MalformedSignature",
		},
		"Partial": {
			reason: "a partial-length packet with a declared length of 1 GiB", store: repeated([]byte{0xcb, 0xfe, 'b'}),
			want: "MalformedSignature",
		},
		"Subpackets": {reason: "a signature packet of subpackets only", store: repeated(newPacket(2,
			append([]byte{4, 0, 1, 8, 0xff, 0xff}, bytes.Repeat([]byte{1, 100}, large/2)...))), want: "MalformedSignature"},
		"DeepClaim": {
			reason: "a deeply nested claim", store: repeated(signedClaim(strings.Repeat(`{"critical":`, large/12))),
			want: "InvalidClaim",
		},
		"WideClaim": {
			reason: "a claim of thousands of fields",
			store:  repeated(signedClaim("{" + strings.Repeat(`"critical":{},`, large/14) + `"critical":{}}`)), want: "InvalidClaim",
		},
		"ManyEqual": {reason: "a valid claim with one field repeated thousands of times", store: repeated(
			signedClaim(strings.Replace(string(claimOf(digest)), `{`, "{"+strings.Repeat(`"optional":{},`, large/14), 1))), want: "DuplicateField"},
		"Oversized":    {reason: "a signature of 20 MiB", store: repeated(make([]byte, 20<<20)), want: "TooLarge"},
		"HTTP":         {reason: "20 MiB from a server", store: served(t, 20<<20), want: "TooLarge"},
		"HTTPExactly":  {reason: "exactly the limit", store: served(t, 64<<10), want: "MalformedSignature"},
		"HTTPInflates": {reason: "a server that compresses its response", store: packed(t, bomb), want: "MalformedSignature"},
		"ConfigMaps": {
			reason: "the maximum number of signatures in ConfigMaps",
			store:  ConfigMaps(t, 100, signedClaim(strings.Repeat("a", large))), want: "InvalidClaim",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := frugal(t, signature.Trust{Keyrings: []signature.Keyring{k}, Stores: []store.Store{tc.store}})
			check(t, tc.reason, tc.want, r, err)
		})
	}
}

// repeated is a store with the same signature nine times.
func repeated(data []byte) memory {
	return memory{data, data, data, data, data, data, data, data, data}
}

func served(t *testing.T, size int) store.Store {
	t.Helper()
	chunk := make([]byte, 32<<10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for rest := size; rest > 0; rest -= len(chunk) {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	return newStore(t, server.URL)
}

// packed is a server that sends an unrequested compressed response.
func packed(t *testing.T, data []byte) store.Store {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "deflate")
		_, _ = w.Write(data[7:])
	}))
	t.Cleanup(server.Close)
	return newStore(t, server.URL)
}

// ConfigMaps is the cluster's own store with n different signatures.
func ConfigMaps(t *testing.T, n int, data []byte) store.Store {
	t.Helper()
	signed := release.Store{}
	for i := range n {
		signed.Add(pullSpec, append(bytes.Clone(data), make([]byte, i)...))
	}
	core := fake.NewClientset(signed.ConfigMap("a"),
		release.VerificationConfigMap(map[string][]byte{"a": publicKey(t, newSigner(t, "a", nil))}, nil))
	trust, err := signature.FromCluster(t.Context(), core.CoreV1(), configfake.NewClientset().ConfigV1())
	if err != nil {
		t.Fatal(err)
	}
	return trust.Stores[0]
}

// TestKeyringMemory bounds the memory used for hostile keyrings.
func TestKeyringMemory(t *testing.T) {
	key := publicKey(t, newSigner(t, "a", nil))
	raw := binaryKey(t, newSigner(t, "a", nil).Entity())
	const large = 1<<20 - 1
	for name, tc := range map[string]struct {
		reason string
		data   []byte
		want   string
	}{
		"Blocks": {reason: "the same armored key repeated up to the limit", data: bytes.Repeat(append(key, '\n'), large/(len(key)+1))},
		"Keys":   {reason: "the same binary key repeated up to the limit", data: bytes.Repeat(raw, large/len(raw))},
		"Packets": {
			reason: "one key with too many packets", data: append(bytes.Clone(raw), bytes.Repeat([]byte{0xcd, 1, 'a'}, 300<<10)...),
			want: "InvalidKeyring",
		},
		"Length": {
			reason: "a packet with a declared length of 4 GiB", data: []byte{0xc6, 0xff, 0xff, 0xff, 0xff, 0xff, 4},
			want: "InvalidKeyring",
		},
		"Large": {reason: "above 1 MiB", data: make([]byte, 64<<20), want: "InvalidKeyring"},
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := signature.ReadKeyring("a", bytes.NewReader(tc.data))
			runtime.ReadMemStats(&after)
			if tc.want != "" {
				check(t, tc.reason, tc.want, signature.Release{}, err)
			} else if err != nil {
				t.Errorf("%s: %v", tc.reason, err)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > maxMemory {
				t.Errorf("%s: %d bytes allocated, want at most %d", tc.reason, n, maxMemory)
			}
		})
	}
}
