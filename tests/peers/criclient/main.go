// SPDX-License-Identifier: Apache-2.0

// criclient drives a server of ours with grpc-go, as the kubelet does.
//
//	criclient peer SOCKET             the transport: tests/component/grpc's peer
//	criclient images SOCKET IMAGE     ImageService, through the kubelet's own client (k8s.io/cri-client)
//
// It prints a line per check and ends with 1 when one failed.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	remote "k8s.io/cri-client/pkg"
)

// plain sends and receives bytes as they are.
type plain struct{}

func (plain) Name() string                  { return "plain" }
func (plain) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }
func (plain) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = append([]byte(nil), data...)
	return nil
}

var failed bool

func check(name string, err error) {
	if err != nil {
		failed = true
		fmt.Printf("not ok - %s: %v\n", name, err)
		return
	}
	fmt.Printf("ok - %s\n", name)
}

func dial(socket string) *grpc.ClientConn {
	conn, err := grpc.NewClient("passthrough:///"+socket,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithAuthority("localhost"),
		grpc.WithContextDialer(func(ctx context.Context, path string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(16<<20), grpc.ForceCodec(plain{})))
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	return conn
}

func call(ctx context.Context, conn *grpc.ClientConn, method, request string) (string, error) {
	in, out := []byte(request), []byte(nil)
	err := conn.Invoke(ctx, "/test.Peer/"+method, &in, &out)
	return string(out), err
}

func want(code codes.Code, err error) error {
	if status.Code(err) != code {
		return fmt.Errorf("wanted %v, got %v", code, err)
	}
	return nil
}

func soon(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	_ = cancel // the process ends soon
	return ctx
}

func manyAtOnce(conn *grpc.ClientConn, count int) error {
	var group sync.WaitGroup
	errs := make(chan error, count)
	for i := 0; i < count; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			if _, err := call(soon(60*time.Second), conn, "Slow", "500"); err != nil {
				errs <- err
			}
		}()
	}
	group.Wait()
	close(errs)
	return <-errs
}

func streamOf(conn *grpc.ClientConn, count, size int) error {
	stream, err := conn.NewStream(soon(30*time.Second), &grpc.StreamDesc{ServerStreams: true}, "/test.Peer/Stream")
	if err != nil {
		return err
	}
	in := []byte(fmt.Sprintf("%d %d", count, size))
	if err := stream.SendMsg(&in); err != nil {
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	for got := 0; ; got++ {
		var out []byte
		if err := stream.RecvMsg(&out); err != nil {
			if got != count {
				return fmt.Errorf("%d messages, then %v", got, err)
			}
			return nil
		}
		if len(out) != size {
			return fmt.Errorf("message of %d bytes", len(out))
		}
	}
}

// abrupt opens connections, leaves calls under way and closes; the server must be as before.
func abrupt(socket string, observer *grpc.ClientConn) error {
	before, err := call(soon(5*time.Second), observer, "Counts", "")
	if err != nil {
		return err
	}
	for i := 0; i < 100; i++ {
		conn := dial(socket)
		go func() { _, _ = call(soon(5*time.Second), conn, "Slow", "300") }()
		go func() { _, _ = call(soon(5*time.Second), conn, "Big", "4000000") }()
		time.Sleep(2 * time.Millisecond)
		conn.Close()
	}
	time.Sleep(1500 * time.Millisecond)
	after, err := call(soon(5*time.Second), observer, "Counts", "")
	if err != nil {
		return err
	}
	b, a := strings.Fields(before), strings.Fields(after)
	for _, i := range []int{0, 1, 3} { // connections, calls, descriptors
		if b[i] != a[i] {
			return fmt.Errorf("before %q, after %q", before, after)
		}
	}
	return nil
}

func peer(socket string) {
	conn := dial(socket)
	defer conn.Close()

	answer, err := call(soon(5*time.Second), conn, "Echo", "hello")
	if err == nil && answer != "hello" {
		err = fmt.Errorf("got %q", answer)
	}
	check("an echo", err)

	answer, err = call(soon(20*time.Second), conn, "Big", strconv.Itoa(10<<20))
	if err == nil && len(answer) != 10<<20 {
		err = fmt.Errorf("got %d bytes", len(answer))
	}
	check("an answer of 10 MiB", err)

	_, err = call(soon(5*time.Second), conn, "Nothing", "")
	check("an unknown method is UNIMPLEMENTED", want(codes.Unimplemented, err))

	_, err = call(soon(200*time.Millisecond), conn, "Slow", "3000")
	check("a deadline", want(codes.DeadlineExceeded, err))

	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(200*time.Millisecond, cancel)
	_, err = call(ctx, conn, "Slow", "3000")
	check("a cancellation", want(codes.Canceled, err))

	_, err = call(soon(5*time.Second), conn, "Fail", "5 no such thing: 100% \u00fc")
	if e := want(codes.NotFound, err); e != nil {
		err = e
	} else if s, _ := status.FromError(err); s.Message() != "no such thing: 100% \u00fc" {
		err = fmt.Errorf("text %q", s.Message())
	} else {
		err = nil
	}
	check("status and text", err)

	check("a stream of 5000 messages", streamOf(conn, 5000, 1000))
	check("1000 calls at once on one connection", manyAtOnce(conn, 1000))
	check("100 abrupt disconnects leave nothing behind", abrupt(socket, conn))
}

func images(socket, image string) {
	ctx := context.Background()
	service, err := remote.NewRemoteImageService(ctx, "unix://"+socket, 30*time.Second, nil, false)
	if err != nil {
		check("connect", err)
		return
	}
	spec := &runtimeapi.ImageSpec{Image: image}
	ref, err := service.PullImage(ctx, spec, nil, nil)
	check("PullImage", err)

	answer, err := service.ImageStatus(ctx, spec, true)
	if err == nil && (answer.Image == nil || answer.Image.Id != ref) {
		err = fmt.Errorf("image_ref is %q and the image %v", ref, answer.Image)
	}
	check("image_ref equals Image.id", err)

	list, err := service.ListImages(ctx, &runtimeapi.ImageFilter{Image: spec})
	if err == nil && (len(list) != 1 || list[0].Id != ref) {
		err = fmt.Errorf("listed %v", list)
	}
	check("ListImages with a filter", err)

	info, err := service.ImageFsInfo(ctx)
	if err == nil && (len(info.ImageFilesystems) != 1 || info.ImageFilesystems[0].UsedBytes.GetValue() == 0) {
		err = fmt.Errorf("answered %v", info)
	}
	check("ImageFsInfo", err)

	check("RemoveImage", service.RemoveImage(ctx, spec))
	answer, err = service.ImageStatus(ctx, spec, false)
	if err == nil && answer.Image != nil {
		err = fmt.Errorf("it is still there")
	}
	check("a removed image has no status, without an error", err)
	check("removing it again succeeds", service.RemoveImage(ctx, spec))
}

func main() {
	encoding.RegisterCodec(plain{})
	switch {
	case len(os.Args) == 3 && os.Args[1] == "peer":
		peer(os.Args[2])
	case len(os.Args) == 4 && os.Args[1] == "images":
		images(os.Args[2], os.Args[3])
	default:
		fmt.Println("criclient peer SOCKET | images SOCKET IMAGE")
		os.Exit(64)
	}
	if failed {
		os.Exit(1)
	}
}
