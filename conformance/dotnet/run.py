"""Check Pleiad with the official .NET client: `python -m conformance.dotnet.run`.

Runs the C# program of this folder by `dotnet` where its SDK is installed, else by the kit `shared/dotnet/netrun` beside
the checkout: over plain HTTP in gateway mode, and over HTTPS in direct mode, the default of the client.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from conformance.client_program import DIRECT, GATEWAY, ClientProgram, ToolMissingError, check_client

SOURCE_DIR = Path(__file__).resolve().parent
KIT = SOURCE_DIR.parent.parent.parent / "shared" / "dotnet" / "netrun"


def build(directory: Path) -> list[str]:
    """Return what builds and runs the program: the SDK, or the kit."""
    dotnet = shutil.which("dotnet")
    if dotnet is not None:
        sdks = subprocess.run([dotnet, "--list-sdks"], capture_output=True, text=True, check=False)
        if sdks.stdout.strip():
            source = directory / "source"
            shutil.copytree(SOURCE_DIR, source, dirs_exist_ok=True)
            return [dotnet, "run", "--configuration", "Release", "--project", str(source)]
    if KIT.is_file():
        return [str(KIT), str(SOURCE_DIR)]
    raise ToolMissingError(
        "there is no .NET SDK here and no kit beside the checkout: the .NET client is left out"
    )


PROGRAM = ClientProgram(
    name="dotnet",
    language=".NET",
    sections="catalog,items,ids,queries,paging,changefeed,batch,bulk,scripts,binary,ef,splits,exchange",
    left_out="several regions; client-side encryption",
    modes=(GATEWAY, DIRECT),
    build=build,
    # What is throttled the client sends again, which is part of the check.
    throttle="enforce",
    # Without it the client asks a cloud's metadata address when it starts.
    environment={"COSMOS_DISABLE_IMDS_ACCESS": "true"},
)

if __name__ == "__main__":
    sys.exit(check_client(PROGRAM))
