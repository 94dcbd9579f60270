package signature_test

import (
	"bytes"
	"compress/flate"
	"compress/zlib"
	"context"
	"crypto"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"github.com/openshift/update-preflight/signature"
	"github.com/openshift/update-preflight/signature/refusal"
	"github.com/openshift/update-preflight/signature/store"
	"github.com/openshift/update-preflight/test/release"
)

const (
	repository = "quay.io/openshift-release-dev/ocp-release"
	reference  = repository + ":4.20.1-x86_64"
)

var (
	digest   = "sha256:" + strings.Repeat("0a", 32)
	pullSpec = repository + "@" + digest
	other    = "sha256:" + strings.Repeat("0b", 32)
)

// memory is a store with the same signatures for every digest.
type memory [][]byte

func (m memory) String() string { return "memory" }

func (m memory) Signature(_ context.Context, _ string, n int) ([]byte, error) {
	if n > len(m) {
		return nil, fs.ErrNotExist
	}
	return m[n-1], nil
}

// broken is a store that always fails.
type broken struct{ err error }

func (broken) String() string { return "broken" }

func (b broken) Signature(context.Context, string, int) ([]byte, error) { return nil, b.err }

func newSigner(tb testing.TB, name string, config *packet.Config) *release.Signer {
	tb.Helper()
	signer, err := release.NewSignerWith(name, config)
	if err != nil {
		tb.Fatal(err)
	}
	return signer
}

// keyring is a keyring with the public keys of signers.
func keyring(tb testing.TB, name string, signers ...*release.Signer) signature.Keyring {
	tb.Helper()
	var armored []byte
	for _, signer := range signers {
		armored = append(append(armored, publicKey(tb, signer)...), '\n')
	}
	k, err := signature.ReadKeyring(name, bytes.NewReader(armored))
	if err != nil {
		tb.Fatal(err)
	}
	return k
}

func publicKey(tb testing.TB, signer *release.Signer) []byte {
	tb.Helper()
	key, err := signer.PublicKey()
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

func sign(tb testing.TB, signer *release.Signer, pullSpec string) []byte {
	tb.Helper()
	data, err := signer.Sign(pullSpec, reference)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// claimOf is the signature claim for digest.
func claimOf(digest string) []byte {
	return fmt.Appendf(nil, `{"critical":{"type":"atomic container signature","image":{"docker-manifest-digest":%q},`+
		`"identity":{"docker-reference":%q}},"optional":{"creator":"test","timestamp":1740064108}}`, digest, reference)
}

// message is a signed message in its parts, for invalid combinations. The
// zero values of all fields but body are those of a valid message.
type message struct {
	body     []byte
	hash     crypto.Hash
	kind     packet.SignatureType
	created  time.Time
	lifetime uint32
	notation bool
	name     string
	date     time.Time
	format   byte
}

// parts are the three packets: one-pass signature, literal data, signature.
func (m message) parts(tb testing.TB, signer *release.Signer) (onePass, literal, sig []byte) {
	tb.Helper()
	if m.hash == 0 {
		m.hash = crypto.SHA256
	}
	if m.created.IsZero() {
		m.created = time.Now()
	}
	if m.format == 0 {
		m.format = 'b'
	}
	entity := signer.Entity()
	key := entity.PrimaryKey
	s := &packet.Signature{
		Version: 4, SigType: m.kind, PubKeyAlgo: key.PubKeyAlgo, Hash: m.hash, CreationTime: m.created,
		IssuerKeyId: &key.KeyId, SigLifetimeSecs: &m.lifetime,
	}
	if m.notation {
		s.Notations = []*packet.Notation{{Name: "a@example.com", Value: []byte("b"), IsCritical: true, IsHumanReadable: true}}
	}
	h := m.hash.New()
	signed := h
	if m.kind == packet.SigTypeText {
		signed = openpgp.NewCanonicalTextHash(h)
	}
	_, _ = signed.Write(m.body)
	if err := s.Sign(h, entity.PrivateKey, nil); err != nil {
		tb.Fatal(err)
	}
	var first, last bytes.Buffer
	announced := &packet.OnePassSignature{
		Version: 3, SigType: m.kind, Hash: m.hash, PubKeyAlgo: key.PubKeyAlgo, KeyId: key.KeyId, IsLast: true,
	}
	if err := announced.Serialize(&first); err != nil {
		tb.Fatal(err)
	}
	if err := s.Serialize(&last); err != nil {
		tb.Fatal(err)
	}
	content := append([]byte{m.format, byte(len(m.name))}, m.name...)
	date := uint32(0)
	if !m.date.IsZero() {
		date = uint32(m.date.Unix())
	}
	content = append(binary.BigEndian.AppendUint32(content, date), m.body...)
	return first.Bytes(), newPacket(11, content), last.Bytes()
}

// bytes is the message in its valid order.
func (m message) bytes(tb testing.TB, signer *release.Signer) []byte {
	tb.Helper()
	onePass, literal, sig := m.parts(tb, signer)
	return bytes.Join([][]byte{onePass, literal, sig}, nil)
}

// newPacket is a packet with a five-byte length.
func newPacket(tag byte, content []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0xc0 | tag, 0xff}, uint32(len(content))), content...)
}

// zip compresses a message, with ZLIB's checksum when zlibbed.
func zip(tb testing.TB, algorithm byte, data []byte) []byte {
	tb.Helper()
	var buffer bytes.Buffer
	buffer.WriteByte(algorithm)
	var w interface {
		Write([]byte) (int, error)
		Close() error
	}
	w, err := flate.NewWriter(&buffer, flate.BestCompression)
	if algorithm == 2 {
		w, err = zlib.NewWriterLevel(&buffer, zlib.BestCompression)
	}
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := w.Write(data); err != nil {
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return newPacket(8, buffer.Bytes())
}

// check compares the result of Verify with the wanted reason; "" wants a proof.
func check(t *testing.T, why, want string, r signature.Release, err error) {
	t.Helper()
	if want == "" {
		if err != nil || !r.Verified() || r.Digest() != digest || r.PullSpec() != pullSpec {
			t.Errorf("%s: not verified: %v", why, err)
		}
		return
	}
	var e *refusal.Error
	if !errors.As(err, &e) {
		t.Fatalf("%s: error %v, want an *Error with reason %s", why, err, want)
	}
	if e.Reason.String() != want {
		t.Errorf("%s: reason %s, want %s: %v", why, e.Reason, want, err)
	}
	if e.Message == "" || e.Remediation == "" || e.Outcome == "" || strings.Contains(e.Message, "\n") {
		t.Errorf("%s: error without a one-line message, a remedy or an outcome: %+v", why, e)
	}
	if !regexp.MustCompile(`^[A-Z].*\.$`).MatchString(e.Remediation) ||
		regexp.MustCompile(`--(keyring|signature-store|repository|force)`).MatchString(e.Remediation) {
		t.Errorf("%s: remedy %q is not a sentence without options of a program", why, e.Remediation)
	}
	if r.Verified() || r.PullSpec() != "" {
		t.Errorf("%s: an error together with a proof", why)
	}
}

// verify verifies pullSpec with one keyring and one store of signatures.
func verify(t *testing.T, k signature.Keyring, signatures ...[]byte) (signature.Release, error) {
	t.Helper()
	return frugal(t, signature.Trust{Keyrings: []signature.Keyring{k}, Stores: []store.Store{memory(signatures)}})
}

// maxMemory bounds the memory of a verification of any input.
const maxMemory = 64 << 20

// frugal verifies and bounds the total of all allocations, which is an upper bound
// of the peak heap.
func frugal(t *testing.T, trust signature.Trust) (signature.Release, error) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r, err := signature.Verify(t.Context(), pullSpec, trust)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > maxMemory {
		t.Errorf("%d bytes allocated, want at most %d", n, maxMemory)
	}
	return r, err
}

// revoke marks the key of signer as compromised.
func revoke(t *testing.T, signer *release.Signer) {
	t.Helper()
	if err := signer.Entity().RevokeKey(packet.KeyCompromised, "", nil); err != nil {
		t.Fatal(err)
	}
}

// binaryKey is the public key without armor.
func binaryKey(tb testing.TB, entity *openpgp.Entity) []byte {
	tb.Helper()
	var buffer bytes.Buffer
	if err := entity.Serialize(&buffer); err != nil {
		tb.Fatal(err)
	}
	return buffer.Bytes()
}
