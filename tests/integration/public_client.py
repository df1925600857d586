"""A gRPC client that was built knowing nothing of elastic-run: it is given an address, learns by
reflection what is served there, and calls it with JSON in and out. Needs python3-grpcio only.

  public_client.py ADDRESS                         services, the job's status and the health check
  public_client.py ADDRESS SERVICE/METHOD [JSON]   one call
  public_client.py --start PROGRAM                 the first form, against an elastic-rendezvous
"""

import json
import re
import subprocess
import sys

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

TIMEOUT_S = 10
REFLECTION = "grpc.reflection.v1alpha"


def message_class(descriptor):
    if hasattr(message_factory, "GetMessageClass"):  # protobuf 4.22 and later
        return message_factory.GetMessageClass(descriptor)
    return message_factory.MessageFactory().GetPrototype(descriptor)


def reflection_file():
    """The part that is used of grpc/reflection/v1alpha/reflection.proto."""
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="reflection.proto", package=REFLECTION,
                                              syntax="proto3")

    def add(name, fields):
        message = file.message_type.add(name=name)
        for field, number, kind, repeated in fields:
            added = message.field.add(name=field, number=number)
            added.label = kinds.LABEL_REPEATED if repeated else kinds.LABEL_OPTIONAL
            if isinstance(kind, str):
                added.type, added.type_name = kinds.TYPE_MESSAGE, f".{REFLECTION}.{kind}"
            else:
                added.type = kind

    add("ServerReflectionRequest", [("file_by_filename", 3, kinds.TYPE_STRING, False),
                                    ("file_containing_symbol", 4, kinds.TYPE_STRING, False),
                                    ("list_services", 7, kinds.TYPE_STRING, False)])
    add("FileDescriptorResponse", [("file_descriptor_proto", 1, kinds.TYPE_BYTES, True)])
    add("ServiceResponse", [("name", 1, kinds.TYPE_STRING, False)])
    add("ListServiceResponse", [("service", 1, "ServiceResponse", True)])
    add("ErrorResponse", [("error_code", 1, kinds.TYPE_INT32, False),
                          ("error_message", 2, kinds.TYPE_STRING, False)])
    add("ServerReflectionResponse", [
        ("file_descriptor_response", 4, "FileDescriptorResponse", False),
        ("list_services_response", 6, "ListServiceResponse", False),
        ("error_response", 7, "ErrorResponse", False)])
    return file


class PublicClient:
    def __init__(self, address):
        self.channel = grpc.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)])
        own = descriptor_pool.DescriptorPool()
        own.Add(reflection_file())
        self._request = message_class(
            own.FindMessageTypeByName(f"{REFLECTION}.ServerReflectionRequest"))
        self._response = message_class(
            own.FindMessageTypeByName(f"{REFLECTION}.ServerReflectionResponse"))
        self._pool = descriptor_pool.DescriptorPool()
        self._files = set()

    def _reflect(self, **question):
        call = self.channel.stream_stream(
            f"/{REFLECTION}.ServerReflection/ServerReflectionInfo",
            request_serializer=self._request.SerializeToString,
            response_deserializer=self._response.FromString)
        answer = next(iter(call(iter([self._request(**question)]), timeout=TIMEOUT_S)))
        if answer.HasField("error_response"):
            raise LookupError(f"{question}: {answer.error_response.error_message}")
        return answer

    def services(self):
        answer = self._reflect(list_services="*")
        return sorted(service.name for service in answer.list_services_response.service)

    def _add_files(self, answer):
        """Files may come without those they import, which are asked for first."""
        for raw in answer.file_descriptor_response.file_descriptor_proto:
            file = descriptor_pb2.FileDescriptorProto.FromString(raw)
            if file.name in self._files:
                continue
            for needed in file.dependency:
                if needed not in self._files:
                    self._add_files(self._reflect(file_by_filename=needed))
            self._files.add(file.name)
            self._pool.Add(file)

    def describe(self, service):
        self._add_files(self._reflect(file_containing_symbol=service))
        return self._pool.FindServiceByName(service)

    def call(self, service, method, json_in="{}"):
        described = self.describe(service).FindMethodByName(method)
        request = json_format.Parse(json_in, message_class(described.input_type)())
        call = self.channel.unary_unary(
            f"/{service}/{method}", request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=message_class(described.output_type).FromString)
        answer = call(request, timeout=TIMEOUT_S)
        return json_format.MessageToDict(answer)


def check_all(address):
    client = PublicClient(address)
    services = client.services()
    print("services:", ", ".join(services))
    assert "elastic.v1.Status" in services, services
    assert "elastic.v1.Agents" not in services, "agents have a listener of their own"
    status = client.call("elastic.v1.Status", "GetStatus")
    print("status:", json.dumps(status))
    assert status["job"]["jobId"], status
    assert status["job"]["state"].startswith("JOB_STATE_"), status
    assert status["job"]["np"] >= 1, status
    for name in ("", "elastic.v1.Status"):
        health = client.call("grpc.health.v1.Health", "Check", json.dumps({"service": name}))
        print(f"health of {name!r}:", json.dumps(health))
        assert health == {"status": "SERVING"}, health
    refused = None
    try:
        client.call("elastic.v1.Status", "GetStatus", '{"no_such_field": 1}')
    except json_format.ParseError as error:
        refused = error
    assert refused is not None, "a field that does not exist must be refused by its description"


def check_started(program):
    server = subprocess.Popen(
        [program, "--np", "1", "-H", "localhost:1", "--job-id", "public"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        for line in server.stderr:
            found = re.search(r"--address (\S+)", line)
            if found:
                check_all(found.group(1))
                return
        raise AssertionError("the server ended without naming its status address")
    finally:
        server.kill()
        server.wait()
        server.stderr.close()


def main(arguments):
    if len(arguments) == 2 and arguments[0] == "--start":
        check_started(arguments[1])
    elif len(arguments) == 1:
        check_all(arguments[0])
    elif len(arguments) in (2, 3) and "/" in arguments[1]:
        service, method = arguments[1].split("/")
        print(json.dumps(PublicClient(arguments[0]).call(service, method, *arguments[2:]),
                         indent=2))
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
